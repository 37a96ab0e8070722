"""Sums, differences and products of small numbers. Some pairs of operands are never trained on."""

from __future__ import annotations

import re
from random import Random
from zlib import crc32

LARGEST = {"+": 50, "-": 50, "*": 12}
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty".split()
WORDS = [*SMALL, *(f"{ten}-{one}".removesuffix("-zero") for ten in TENS for one in SMALL[:10]), "fifty"]
# Operators between the operands.
SPOKEN = {
    "+": ("plus", "plus", "+", " + ", "and", "added to", "together with", "combined with", "summed with", "&"),
    "-": ("minus", "minus", "-", " - ", "less", "take away", "subtract", "without", "reduced by", "−", "–", "decreased by", "lowered by"),
    "*": ("times", "times", "*", " * ", "x", "X", "multiplied by", "×", "·", "multiplied with"),
}  # fmt: skip
# Nouns for a result, put into FRAMES like `a + b`.
PHRASES = {
    "+": (
        "the sum of {a} and {b}", "the total of {a} and {b}", "{a} increased by {b}", "{b} more than {a}", "{b} on top of {a}",
        "the result of adding {a} and {b}", "the result of adding {b} to {a}", "{a} plus another {b}", "{a} and {b} together", "{a} and {b} in total",
        "the total when you add {a} and {b}", "the number that is {b} more than {a}", "{a} with {b} added", "the addition of {a} and {b}", "the sum {a} + {b}",
        "{a} and {b} combined", "{b} above {a}", "the number {b} after {a}",
    ),
    "-": (
        "the difference of {a} and {b}", "the difference between {a} and {b}", "the result of subtracting {b} from {a}", "{b} subtracted from {a}",
        "{b} taken from {a}", "{b} taken away from {a}", "{a} with {b} removed", "{b} less than {a}", "{b} fewer than {a}", "{b} below {a}",
        "the number that is {b} less than {a}", "{a} when you take away {b}", "{a} if you subtract {b}", "{a} minus another {b}", "the rest of {a} after taking {b}",
        "the subtraction {a} - {b}", "{a} diminished by {b}", "{b} under {a}", "the number {b} before {a}", "{b} deducted from {a}",
    ),
    "*": (
        "the product of {a} and {b}", "the product {a} * {b}", "{a} times the number {b}", "{a} groups of {b}", "{a} lots of {b}", "{a} rows of {b}", "{a} sets of {b}",
        "{a} multiplied with {b}", "the result of multiplying {a} and {b}", "the result of multiplying {a} by {b}", "{a}-fold {b}", "{b} taken {a} times",
        "{b} repeated {a} times", "{b} added up {a} times", "{a} piles of {b}", "the multiplication of {a} and {b}", "{a} bags with {b} each", "{a} copies of {b}",
        "the area of an {a} by {b} rectangle",
    ),
}  # fmt: skip
# Orders, put into REQUESTS.
TASKS = {
    "+": (
        "add {a} and {b}", "add {b} to {a}", "add {a} to {b}", "add up {a} and {b}", "add {a} + {b}", "sum {a} and {b}", "sum {a} {b}", "sum up {a} and {b}",
        "total {a} and {b}", "put {a} and {b} together", "combine {a} and {b}", "increase {a} by {b}", "count {b} on from {a}", "start with {a} and add {b}",
        "start at {a} and go up {b}", "take {a} and add {b}", "take {a}, then put {b} on top", "find the sum of {a} and {b}", "get the total of {a} and {b}",
    ),
    "-": (
        "subtract {b} from {a}", "take {b} from {a}", "take {b} away from {a}", "take away {b} from {a}", "remove {b} from {a}", "deduct {b} from {a}",
        "reduce {a} by {b}", "lower {a} by {b}", "decrease {a} by {b}", "subtract {a} - {b}", "count back {b} from {a}", "start with {a} and subtract {b}",
        "start with {a} and take away {b}", "start at {a} and go down {b}", "take {a} and subtract {b}", "from {a} subtract {b}", "from {a} take {b}",
        "find the difference of {a} and {b}", "pull {b} off {a}",
    ),
    "*": (
        "multiply {a} by {b}", "multiply {a} and {b}", "multiply {a} with {b}", "multiply {b} by {a}", "find the product of {a} and {b}",
        "get the product of {a} and {b}", "take {a} times {b}", "add up {b} {a} times", "repeat {b} {a} times and add it up", "count {a} groups of {b}",
        "count up by {b}, {a} times", "take {b}, {a} times", "do {a} times {b}", "make {a} groups of {b} and count them",
        "add {b} to itself until you have it {a} times", "multiply {a} * {b}",
    ),
}  # fmt: skip
# Whole sentences, put into ASIDES; none has a negative result.
STORIES = {
    "+": (
        "{a} apples and {b} more apples", "i have {a} and get {b} more", "i have {a} coins and find {b} more, how many coins do i have",
        "i bought {a} apples and {b} pears, how many pieces of fruit are in my bag",
        "a shop sells {a} loaves in the morning and {b} in the afternoon, how many is that", "the first item costs {a} euros and the second {b}, what do i pay",
        "my lunch was {a} dollars and the tip {b}, what did i spend", "the bill says {a} for food and {b} for drinks, what is the total",
        "there are {a} girls and {b} boys in the class, how many children are there", "{a} pupils came by bus and {b} on foot",
        "the teacher has {a} pencils and orders {b} more, how many pencils then", "she got {a} points in maths and {b} in art, how many points altogether",
        "the recipe takes {a} grams of butter and {b} grams of sugar, how heavy is that together",
        "bake for {a} minutes and let it rest for {b}, how long does it take", "{a} eggs are in the fridge and {b} in the basket, how many eggs are there",
        "i poured {a} cups of water and then {b} more cups, how many cups", "we drove {a} km before lunch and {b} km after, how far was that",
        "the train takes {a} minutes and the walk {b}, how long is the way", "{a} miles on monday, {b} miles on tuesday, how many miles",
        "the flight is {a} hours away and it is delayed by {b} hours, how long until it leaves", "i save {a} euros and my aunt gives me {b}, what do i own",
        "my account had {a} and {b} came in, what is the balance", "he earns {a} an hour and gets a raise of {b}, what does he earn now",
        "i owe {a} to ann and {b} to joe, how much do i owe", "tom is {a} and his sister is {b} years older, how old is she",
        "how old will i be in {b} years if i am {a} now", "i am {a} years old, what is my age {b} years from now",
        "my cat is {a}, the dog is {b} years older, what is the dog's age", "there are {a} cows and {b} sheep on the farm, how many animals is that",
        "{a} birds sit on the roof and {b} join them, how many birds sit there", "a hen house with {a} hens gets {b} more hens",
        "we saw {a} ducks and {b} swans, how many birds did we see", "{a} guests are here and {b} are still to come, how many guests will there be",
        "i invited {a} friends and my brother {b}, how many people are invited", "{a} red balloons, {b} blue balloons, how many balloons",
        "i read {a} pages yesterday and {b} today, how many pages did i read", "the shelf holds {a} novels and {b} comics, how many books is that",
        "a library had {a} maps and bought {b}, how many maps does it have", "our team scored {a} in the first half and {b} in the second, what is our score",
        "she ran {a} laps, rested and ran {b} more, how many laps in all", "{a} goals last season and {b} this season",
        "he did {a} push-ups and then another {b}, how many did he do", "{a} cars are parked and {b} more drive in, how many cars are in the lot",
        "the bus has {a} passengers and {b} get on, how many passengers now", "it was {a} degrees and got {b} degrees warmer, how warm is it",
        "the water is {a} degrees and i heat it up by {b}, what is its temperature", "the box weighs {a} kilos and the bag {b}, what do they weigh together",
        "a puppy weighed {a} kilos and gained {b}, what is its weight now", "a rope is {a} metres, the other {b}, how long are they end to end",
        "i planted {a} tulips and {b} roses, how many flowers are in the bed", "{a} emails came in before noon and {b} after",
        "the lift is on floor {a} and goes up {b} floors, where does it stop", "i had {a} tabs open and opened {b} more",
        "{a} people work upstairs and {b} downstairs, how many people work here", "level {a} now, {b} levels still to climb, what is the top level",
        "a song of {a} seconds and one of {b} seconds, how long is the playlist", "i picked {a} plums, my son picked {b}, how many plums do we have",
        "{b} new chairs join the {a} old ones, how many chairs are there", "after {a} days of rain came {b} days of sun, how many days were that",
        "put {b} more marbles into a jar with {a} marbles, how many are inside", "my plant was {a} cm tall and grew {b} cm, how tall is it",
    ),
    "-": (
        "{a} apples without {b}", "i had {a} and lost {b}", "i had {a} coins and lost {b}, how many are left", "i had {a} apples and ate {b}, how many do i still have",
        "a shop has {a} loaves and sells {b}, how many loaves remain", "the coat was {a} euros and is {b} cheaper now, what does it cost",
        "i pay with {a} for something that costs {b}, what change do i get", "the price of {a} drops by {b}, what is the new price",
        "i have a coupon worth {b} and the bill is {a}, what do i pay", "there are {a} children in the class and {b} are ill, how many are there today",
        "of {a} pupils {b} went home", "the teacher had {a} pencils and gave away {b}, how many are left",
        "the test has {a} questions and i answered {b}, how many are missing", "{b} of the {a} answers were wrong, how many were right",
        "there were {a} eggs and i used {b} for the cake, how many eggs are left", "the oven is set for {a} minutes and {b} have passed, how long is left",
        "a jug with {a} cups of milk, {b} cups are poured out, what stays in it", "we have {a} plates and break {b}, how many plates do we have",
        "the way is {a} km and i walked {b}, how far is it still", "the trip takes {a} hours and we drove {b} already, how much longer",
        "{a} stops on the line, {b} are behind us, how many to go", "the train should come in {a} minutes but is {b} minutes early, when does it come",
        "i saved {a} and spent {b}, what is left", "my account had {a} and i paid {b}, what is the balance",
        "of my {a} euros i lent {b} to a friend, how much do i keep", "he owed {a} and paid back {b}, how much does he still owe",
        "tom is {a} and his sister is {b} years younger, how old is she", "how old was i {b} years ago if i am {a} now",
        "dad is {a}, i am {b}, how many years are between us", "my dog is {a} and the cat is {b}, how much older is the dog",
        "the farmer had {a} sheep and sold {b}, how many sheep are left", "{a} birds sit on the wire and {b} fly off, how many stay",
        "a pond with {a} frogs, {b} hop away", "{b} of the {a} fish were eaten, how many fish are still there",
        "{a} guests came and {b} have left, how many guests are still here", "i invited {a} people and {b} said no, how many come",
        "we had {a} balloons and {b} popped, how many balloons are left", "{a} slices of cake, {b} are gone, how many are left",
        "the book has {a} pages and i read {b}, how many pages remain", "the shelf had {a} books and {b} were borrowed, how many books stand there",
        "she owns {a} comics and gives {b} to me, how many does she keep", "our team has {a} points, theirs has {b}, how far ahead are we",
        "we won {a} to {b}, by how many goals", "{a} laps to run and {b} done, how many are to come", "of {a} players {b} are hurt, how many can play",
        "{a} spaces in the car park, {b} are taken, how many are free", "{a} cars were parked and {b} drove off, how many are there now",
        "the bus had {a} passengers and {b} got off, how many passengers are left", "it was {a} degrees and got {b} degrees colder, what is it now",
        "the water had {a} degrees and cooled down by {b}, how warm is it", "the bag weighs {a} kilos, i take out {b} kilos, how heavy is it then",
        "she weighed {a} kilos and lost {b}, what does she weigh now", "the rope is {a} metres and i cut off {b}, how long is the rest",
        "the lift is on floor {a} and goes down {b} floors, where is it", "i need {a} stamps and have {b}, how many more do i need", "how many more than {b} is {a}",
        "how far is it from {b} to {a}", "what must i add to {b} to get {a}", "{b} plus what makes {a}",
        "if i take {b} marbles out of a jar of {a}, how many are in it", "a tank of {a} litres leaks {b} litres, how much is in it",
        "{a} tasks on the list, {b} are done, how many are open", "the candle was {a} cm tall and burned down {b} cm, how tall is it now",
    ),
    "*": (
        "{a} boxes of {b} eggs", "{a} boxes of {b} eggs, how many eggs", "i buy {a} bags with {b} apples in each, how many apples do i have",
        "{a} shirts at {b} euros each, what do they cost", "a ticket costs {b} and i need {a}, what do i pay", "what do {a} coffees cost at {b} each",
        "{a} packs of pens, {b} pens per pack, how many pens", "each crate holds {b} bottles and we have {a} crates, how many bottles is that",
        "{a} tables with {b} pupils each, how many pupils are there", "there are {a} rows of chairs with {b} chairs in a row, how many chairs",
        "the teacher gives {b} sheets to each of {a} children, how many sheets are needed", "{a} teams of {b} children, how many children play",
        "{a} pages with {b} exercises on each page", "a cake takes {b} eggs, how many eggs do {a} cakes take", "{a} trays of {b} buns go in the oven, how many buns",
        "i bake {b} rolls for each of {a} guests, how many rolls", "{a} spoons of {b} grams each, how many grams",
        "we drive {b} km a day for {a} days, how far do we get", "at {b} km an hour, how far do i get in {a} hours",
        "the bus runs {a} times a day with {b} people each time, how many ride it", "{a} trips of {b} miles", "the hike has {a} stages of {b} km, how long is it",
        "i save {b} euros a week, how much after {a} weeks", "{a} notes of {b} euros, how much money is that",
        "he earns {b} an hour and works {a} hours, what does he get", "{a} friends give me {b} dollars each, how much do i get",
        "the rent for a bike is {b} a day, what do {a} days cost", "my son is {b} and i am {a} times as old, how old am i",
        "a tortoise is {a} times as old as a {b} year old dog, what is its age", "{a} horses with {b} apples each, how many apples do they get",
        "{a} spiders have {b} legs each, how many legs", "{a} nests with {b} birds in each nest, how many birds are there",
        "every hen lays {b} eggs, how many do {a} hens lay", "{a} cages, {b} rabbits per cage", "{a} guests eat {b} slices each, how many slices do we need",
        "i fill {a} party bags with {b} sweets each, how many sweets is that", "{a} bunches of {b} balloons, how many balloons",
        "a table seats {b}, how many guests fit at {a} tables", "{a} shelves with {b} books each, how many books", "i read {b} pages a day, how many pages in {a} days",
        "{a} chapters of {b} pages, how long is the book", "a stack of {a} boxes, {b} comics per box, how many comics",
        "she runs {b} laps on each of {a} days, how many laps", "{a} games with {b} goals each, how many goals is that",
        "a win gives {b} points and we won {a} times, how many points do we have", "he lifts the bar {b} times in each of {a} sets, how many lifts",
        "a car park has {a} levels with {b} cars on each, how many cars", "{a} rows of {b} parking spaces",
        "each of {a} cars carries {b} people, how many people are that", "the temperature rises {b} degrees an hour for {a} hours, how many degrees is that",
        "{a} sacks of {b} kilos, what do they weigh", "a brick weighs {b} kilos, how heavy are {a} bricks", "{a} planks of {b} metres, how many metres of wood",
        "a garden is {a} metres long and {b} metres wide, what is its area", "tiles in {a} rows, {b} tiles to a row, how many tiles",
        "{a} floors with {b} rooms on every floor, how many rooms does the house have", "i take {b} pills a day for {a} days, how many pills",
        "every box has {b} pieces and there are {a} boxes, how many pieces", "{a} weeks with {b} lessons a week, how many lessons",
        "{a} packs with {b} cards in each pack", "if each of {a} kids has {b} pencils, how many pencils are there",
        "{a} songs of {b} minutes each, how long do they play", "plant {a} rows of trees, {b} trees in a row, how many trees",
    ),
}  # fmt: skip
FRAMES: tuple[str, ...] = (
    "@", "@", "@", "@", "@", "@", "@ =", "@ =", "@=", "@ = ?", "@ = what", "@ is", "@ equals", "@ makes", "@ gives", "@ gives what", "@ is what", "@ equals what",
    "@ makes what", "@ makes how much", "@ is how much", "@ please", "@ pls", "@ thanks", "@, please", "@, quickly", "@ go", "go: @", "@, go", "@, you know it",
    "@, what is it", "@, what does that make", "@, what do you get", "@, result", "@ answer", "@ help", "@ now", "@ for me", "@ would be", "@ comes to",
    "@ and the answer is", "what is @", "what is @", "what's @", "whats @", "what is @ please", "what is the value of @", "what's the result of @",
    "what is the answer to @", "what is the result if i type @", "what does @ make", "what does @ equal", "what does @ give", "what does @ come to",
    "what do you get for @", "what do i get for @", "what do we get from @", "what would @ be", "what would @ make", "what number is @", "what number do i get from @",
    "which number is @", "which number equals @", "how much is @", "how much is @ please", "how much makes @", "how much does @ make", "how much would @ be",
    "how much do you get for @", "how much, @", "how many are @", "how many is @", "and what is @", "and @", "and now @", "now @", "ok, @", "ok what is @",
    "so what's @", "so @ is", "well, what is @", "next: @", "next one: @", "another one: @", "one more: @", "quick: @", "quick sum: @", "quick maths: @",
    "quick question, what's @", "easy one: @", "math: @", "maths: @", "maths question: @", "homework: @", "calc @", "calculator: @", "compute @", "compute @ for me",
    "computing @ gives", "calculate @", "please calculate @", "calculate for me @", "work out @", "solve @", "solve this: @", "solve for me: @", "evaluate @",
    "figure out @", "do the math: @", "do @", "find @", "say what @ is", "tell me @", "tell me what @ is", "tell me how much @ is", "give me @",
    "give me the value of @", "show me @", "i need @", "i need to know @", "i want to know what @ is", "i'd like the result of @", "i forgot what @ is",
    "i can't work out @", "i get stuck at @", "my kid asks what @ is", "help me with @", "result of @", "result: @", "the result of @ is", "value of @",
    "the answer to @", "answer this: @", "can you compute @", "can you do @", "can you do @ in your head", "can you tell me @", "can you tell me what @ is",
    "can you solve @", "could you calculate @", "could you work out @ for me", "would you compute @ please", "will you tell me what @ makes", "do you know @",
    "do you know what @ is", "do you know the result of @", "let's see, @", "let me test you: @", "test: @", "you there? @", "hi, what is @", "hello, @",
    "hey, what's @", "hey how much is @", "excuse me, what is @", "please, @", "please tell me what @ is", "please work out @", "kindly compute @",
    "if i type @ what comes out", "any idea what @ is", "guess: @",
)  # fmt: skip
REQUESTS: tuple[str, ...] = (
    "@", "@", "@", "please @", "@ please", "can you @", "could you @", "could you please @", "would you @ for me", "@ for me", "kindly @", "i want you to @",
    "i need you to @", "i'd like you to @", "let's @", "now @", "go on, @", "ok, @", "and now @", "what do i get if i @", "what do you get when you @",
    "what happens if i @", "what comes out if i @", "what is left if i @", "help me @", "i have to @", "my task: @", "homework: @", "exercise: @",
    "@ and tell me the result", "@, what do you get", "@, what is the result", "@ and give me the number", "@, go", "quick: @", "hi, @", "hello, can you @", "try to @",
    "how do i @", "show me how you @",
)  # fmt: skip
ASIDES: tuple[str, ...] = (
    "@", "@", "@", "@", "@", "@", "@", "@", "quick one: @", "a quick one: @", "a puzzle: @", "riddle: @", "word problem: @", "a word problem: @", "math question: @",
    "maths: @", "homework: @", "my homework: @", "here is one: @", "here's my problem: @", "try this: @", "solve this: @", "please help: @", "help me with this: @",
    "tell me: @", "question: @", "my question: @", "i have a question: @", "my daughter asks: @", "from the school book: @", "next one: @", "another one: @", "so, @",
    "ok, @", "hi, @", "hello, @", "hey, @", "suppose @", "@, please", "@, thanks", "@, can you tell me", "@, do you know", "@, quickly",
)  # fmt: skip


def held_out(a: int, sign: str, b: int) -> bool:
    """Whether training never shows this pair, in either order for + and *."""
    low, high = (a, b) if sign == "-" else sorted((a, b))
    return crc32(f"{low} {sign} {high}".encode()) % 10 == 0


def solution(a: int, sign: str, b: int) -> str:
    """The guide's answer, worked in steps so that it is computed and not remembered: a product counts up, a
    sum or difference takes tens before ones, a negative difference is turned around.
    """
    if sign == "*":
        steps = " ".join(str(b * i) for i in range(1, a + 1))
        return f"{a} * {b}: {steps}. {a} * {b} = {a * b}." if a > 1 else f"{a} * {b} = {a * b}."
    result = a + b if sign == "+" else a - b
    if sign == "-" and a < b:
        return f"{_steps(b, '-', a)}{b} - {a} = {-result}, so {a} - {b} = {result}."
    return f"{_steps(a, sign, b)}{a} {sign} {b} = {result}."


def _steps(a: int, sign: str, b: int) -> str:
    tens, ones = b - b % 10, b % 10
    if not tens or not ones:
        return ""
    between = a + tens if sign == "+" else a - tens
    return f"{a} {sign} {tens} = {between}, {between} {sign} {ones} = {between + ones if sign == '+' else between - ones}. "


def pair(random: Random) -> tuple[int, str, int]:
    """Operands that training may show, in the question and in every step of the answer."""
    while True:
        sign = random.choices("+-*", (3, 3, 2))[0]
        a, b = random.randint(0, LARGEST[sign]), random.randint(0, LARGEST[sign])
        if not any(held_out(*shown) for shown in shown_pairs(a, sign, b)):
            return a, sign, b


def shown_pairs(a: int, sign: str, b: int) -> list[tuple[int, str, int]]:
    """Every pair of operands that a question and its answer hold."""
    equations = re.findall(r"(\d+) ([-+*]) (\d+) =", solution(a, sign, b))
    return [(a, sign, b), *((int(left), mark, int(right)) for left, mark, right in equations)]


def question(a: int, sign: str, b: int, random: Random) -> str:
    """One wording of a sum. Only bare forms have a negative result."""
    left, right = _spoken(a, b, random)
    kind = random.random()
    if kind < 0.3 and (sign != "-" or a >= b):
        body, frames = random.choice(STORIES[sign]), ASIDES
    elif kind < 0.4:
        body, frames = random.choice(TASKS[sign]), REQUESTS
    elif kind < 0.5:
        body, frames = random.choice(PHRASES[sign]), FRAMES
    else:
        mark = random.choice(SPOKEN[sign])
        tight = mark in "+-−–*×·xX&" and (left + right).isdigit() and random.random() < 0.6
        body, frames = f"{{a}}{mark}{{b}}" if tight else f"{{a}} {mark} {{b}}", FRAMES
    return random.choice(frames).replace("@", " ".join(body.format(a=left, b=right).split()))


def _spoken(a: int, b: int, random: Random) -> tuple[str, str]:
    """Both operands in digits, mostly; else one or both in words."""
    which = random.choices(("", "a", "b", "ab"), (14, 1, 1, 4))[0]
    between = random.choice("-- ")
    left = WORDS[a].replace("-", between) if "a" in which and a < len(WORDS) else str(a)
    right = WORDS[b].replace("-", between) if "b" in which and b < len(WORDS) else str(b)
    return left, right
