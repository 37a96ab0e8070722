"""Keys and values of the objects in records.py."""

from __future__ import annotations

FIELDS: dict[str, list[str]] = {
    "name": (
        "name first_name last_name full_name surname nickname author owner user user_name customer player "
        "teacher employee contact sender receiver captain artist patient student manager driver guest "
        "host_name director coach singer actor client buyer seller winner assignee parent friend "
        "neighbour reviewer speaker member"
    ).split(),
    "place": (
        "city country town village place destination origin street location venue region state birthplace "
        "home hometown capital address site delivery_city departure arrival district airport station "
        "country_of_origin office"
    ).split(),
    "word": (
        "title color colour animal product product_name job item species brand language status topic room "
        "team fruit model dish category label tool host device genre material plant vehicle kind type "
        "group department course hobby sport subject drink flavor ingredient instrument pet breed shape "
        "style role profession company song_title film book event unit section tag shop"
    ).split(),
    "date": "date start_date end_date due_date birthday deadline delivery_date date_of_birth".split(),
    "time": "time start_time end_time opening_time departure_time wake_up".split(),
    "email": "email mail email_address contact_email reply_to".split(),
    "code": (
        "phone version sku code order_code ticket serial_number room_number license_plate isbn part_number "
        "product_code invoice gate"
    ).split(),
    "integer": (
        "age year count quantity amount pages floor points port seats id stock level goals minutes days "
        "hours weeks size population number wheels visitors score distance layers page_count "
        "year_of_birth birth_year employees members rooms doors children legs lap rank position "
        "number_of_pages order_number user_id capacity total calories steps votes copies guests servings "
        "duration_minutes max_users retries mileage tables episodes"
    ).split(),
    "number": (
        "price weight height temperature rating length speed width cost ratio area volume share depth "
        "price_eur unit_price weight_kg height_m average grade tax discount fee salary rate percentage "
        "score_avg latitude longitude humidity pressure distance_km balance total_price"
    ).split(),
    "boolean": (
        "active done open paid available vegan public married urgent enabled wet new ready sold fragile "
        "in_stock is_open is_active is_admin verified has_garden completed finished closed locked "
        "approved cancelled vegetarian gluten_free free used broken visible private archived member_card "
        "retired heated electric organic delivered subscribed pets_allowed has_wifi online"
    ).split(),
}
WORDS = """
    red blue green black white yellow orange purple pink brown grey violet turquoise beige scarlet dog cat
    horse bird fish cow sheep goat pig duck goose hen rabbit mouse rat hamster fox wolf bear deer moose
    otter beaver badger hedgehog squirrel tiger lion eagle shark whale dolphin seal penguin owl crow raven
    sparrow swan stork falcon hawk parrot snake lizard turtle frog toad spider ant bee wasp butterfly camel
    donkey elephant giraffe zebra monkey gorilla panda kangaroo koala crab lobster salmon trout tuna carp
    bread apple pear banana cherry mango plum peach grape lemon lime melon berry strawberry raspberry
    apricot fig date carrot onion potato tomato cucumber pepper garlic cabbage spinach lettuce pumpkin bean
    pea lentil corn rice wheat oat sugar salt honey butter cheese milk cream yogurt egg flour oil vinegar
    mustard jam chocolate vanilla cinnamon ginger basil mint pizza pasta soup salad stew curry burger
    sandwich omelette pancake waffle cake pie cookie muffin risotto lasagna sushi taco noodle dumpling
    coffee tea juice water beer wine cider cocoa lemonade lamp chair table sofa bed desk shelf mirror carpet
    curtain pillow blanket clock vase candle basket bucket bottle cup plate bowl spoon fork knife pan kettle
    oven fridge engine hammer saw drill wrench pliers screwdriver nail screw bolt chisel ladder rope shovel
    rake broom brush needle scissors ruler doctor pilot baker farmer nurse painter driver cook clerk soldier
    judge singer teacher lawyer plumber carpenter gardener tailor butcher barber waiter dentist engineer
    architect designer writer editor librarian sailor fisherman miner welder mechanic electrician chemist
    biologist actor dancer drummer wood steel glass oak pine birch maple cedar bamboo paper leather wool
    cotton silk linen plastic rubber stone marble clay brick iron gold silver copper bronze tin rose tulip
    lily daisy orchid sunflower fern cactus ivy moss lavender car bike boat truck bus train tram van plane
    ship scooter tractor taxi ferry canoe sled phone laptop tablet camera printer keyboard monitor radio
    speaker charger router server screen battery cable dune hamlet faust emma jazz rock poetry blues folk
    opera soul drama comedy thriller fantasy mystery romance horror history science piano guitar violin
    flute drum trumpet harp cello english french german spanish italian dutch polish turkish greek danish
    latin alpha beta gamma delta omega small large medium tiny huge fresh old young warm cold hot dry soft
    hard round square flat heavy light fast slow bright dark quiet sales kitchen garage support finance
    marketing cellar attic garden balcony office library lobby hall north south east west winter summer
    spring autumn monday tuesday friday sunday morning evening football tennis chess hockey rugby golf
    cricket swimming running cycling skiing rowing boxing yoga hiking fishing pending open closed shipped
    draft final early late gift market river mountain forest island harbor bridge castle tower museum school
    hospital hotel cinema star moon sun cloud rain snow wind storm fire
""".split()
PLACES = """
    Paris London Berlin Rome Madrid Tokyo Oslo Vienna Prague Lisbon Dublin Athens Cairo Lima Boston Denver
    Bern Turin Leeds Porto Ghent Kyoto Hamburg Munich Cologne Bremen Dresden Leipzig Zurich Basel Geneva
    Milan Naples Venice Bologna Palermo Florence Verona Seville Valencia Bilbao Granada Lyon Nice Lille
    Nantes Bordeaux Marseille Toulouse Brussels Antwerp Bruges Utrecht Delft Rotterdam Amsterdam Copenhagen
    Aarhus Malmo Stockholm Uppsala Gothenburg Bergen Helsinki Tampere Turku Tallinn Riga Vilnius Warsaw
    Krakow Gdansk Budapest Bucharest Sofia Belgrade Zagreb Split Ljubljana Bratislava Brno Glasgow Edinburgh
    Cardiff Belfast Cork Galway York Oxford Bristol Liverpool Manchester Istanbul Ankara Izmir Beirut Amman
    Dubai Delhi Mumbai Chennai Hanoi Bangkok Manila Jakarta Seoul Osaka Beijing Shanghai Sydney Perth
    Auckland Wellington Nairobi Lagos Accra Dakar Tunis Rabat Casablanca Pretoria Toronto Montreal Ottawa
    Vancouver Chicago Seattle Austin Dallas Houston Miami Atlanta Portland Phoenix Havana Bogota Quito
    Santiago Montevideo Caracas France Italy Spain Japan Peru Kenya Norway Chile Canada Egypt Germany
    Austria Portugal Ireland Greece Sweden Finland Denmark Poland Turkey India China Brazil Mexico Cuba
    Ghana Morocco Iceland Estonia Croatia Hungary Vietnam Thailand Australia Nigeria Jordan Nepal
""".split()
PLACES += [
    "New York", "San Francisco", "New Delhi", "Cape Town", "Hong Kong", "Buenos Aires", "Los Angeles",
    "New Zealand", "South Korea", "Costa Rica", "Main Street", "High Street", "Park Road",
]  # fmt: skip
