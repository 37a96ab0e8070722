"""JSON objects after a schema: the request names fields and gives their values, the answer is the object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from guide.slots import NAMES, invented, person

FIELDS: dict[str, tuple[str, ...]] = {
    "name": ("name", "first_name", "author", "owner", "user", "customer", "player", "teacher", "employee", "contact", "sender", "captain", "artist", "patient"),
    "place": ("city", "country", "town", "place", "destination", "origin", "street", "location", "venue", "region"),
    "word": ("title", "color", "animal", "product", "job", "item", "species", "brand", "language", "status", "topic", "room", "team", "fruit", "model", "dish", "category", "label", "tool", "host", "device", "genre", "material", "plant", "vehicle", "kind"),
    "integer": ("age", "year", "count", "quantity", "pages", "floor", "points", "port", "seats", "id", "stock", "level", "goals", "minutes", "days", "size", "population", "number", "wheels", "visitors", "score", "distance", "layers"),
    "number": ("price", "weight", "height", "temperature", "rating", "length", "speed", "width", "cost", "ratio", "area", "volume", "share"),
    "boolean": ("active", "done", "open", "paid", "available", "vegan", "public", "married", "urgent", "enabled", "wet", "new", "ready", "sold", "fragile"),
}  # fmt: skip
WORDS = [
    "red",
    "blue",
    "green",
    "black",
    "white",
    "yellow",
    "dog",
    "cat",
    "horse",
    "bird",
    "fish",
    "bread",
    "apple",
    "pear",
    "lamp",
    "chair",
    "table",
    "engine",
    "hammer",
    "doctor",
    "pilot",
    "baker",
    "farmer",
    "nurse",
    "painter",
    "driver",
    "dune",
    "hamlet",
    "faust",
    "emma",
    "jazz",
    "rock",
    "poetry",
    "wood",
    "steel",
    "glass",
    "oak",
    "rose",
    "tulip",
    "car",
    "bike",
    "boat",
    "truck",
    "alpha",
    "beta",
    "gamma",
    "small",
    "large",
    "fresh",
    "sales",
    "kitchen",
    "garage",
    "north",
    "south",
    "coffee",
    "tea",
    "juice",
    "piano",
    "guitar",
    "violin",
    "english",
    "french",
    "german",
    "spanish",
    "cook",
    "clerk",
    "soldier",
    "judge",
    "singer",
    "tiger",
    "lion",
    "eagle",
    "shark",
    "banana",
    "cherry",
    "mango",
    "carrot",
    "onion",
    "potato",
    "gold",
    "silver",
    "copper",
    "winter",
    "summer",
    "sugar",
    "salt",
    "honey",
    "pizza",
    "pasta",
    "soup",
    "salad",
]
PLACES = [
    "Paris",
    "London",
    "Berlin",
    "Rome",
    "Madrid",
    "Tokyo",
    "Oslo",
    "Vienna",
    "Prague",
    "Lisbon",
    "Dublin",
    "Athens",
    "Cairo",
    "Lima",
    "Boston",
    "Denver",
    "France",
    "Italy",
    "Spain",
    "Japan",
    "Peru",
    "Kenya",
    "Norway",
    "Chile",
    "Canada",
    "Egypt",
    "Bern",
    "Turin",
    "Leeds",
    "Porto",
    "Ghent",
    "Kyoto",
]
TYPES = {
    "name": "string",
    "place": "string",
    "word": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
ORDERS = (
    "make", "write", "give me", "return", "create", "produce", "build", "output", "generate", "print", "answer with", "fill in", "reply with", "i need", "format this as",
    "turn this into", "extract", "convert this to", "put this into", "respond with", "show me", "please write", "can you make", "construct", "compose",
)  # fmt: skip
OBJECTS = (
    "a JSON object",
    "JSON",
    "json",
    "a json object",
    "one JSON object",
    "a JSON record",
    "valid JSON",
    "an object in JSON",
    "json data",
    "a JSON document",
)


@dataclass(frozen=True)
class Field:
    """One member of an object."""

    key: str
    type: str
    value: Any

    @property
    def shown(self) -> str:
        """The value as a request gives it."""
        return json.dumps(self.value) if self.type == "boolean" else str(self.value)


def draw(random: Random) -> list[Field]:
    """One to four fields with values."""
    kinds = random.choices(list(FIELDS), (3, 2, 3, 4, 2, 2), k=random.choice((1, 2, 2, 2, 3, 3, 3, 4)))
    keys: dict[str, str] = {}
    for kind in kinds:
        keys.setdefault(invented(random) if random.random() < 0.12 else random.choice(FIELDS[kind]), kind)
    return [Field(key, TYPES[kind], _value(kind, random)) for key, kind in keys.items()]


def request(fields: list[Field], random: Random) -> str:
    """One wording that names the schema and gives the values."""
    order = f"{random.choice(ORDERS)} {random.choice(OBJECTS)}"
    schema, given = random.choice(SCHEMAS)(fields), _given(fields, random)
    joint = random.choice((": ", ". ", "; ", " - ", "\n", ", "))
    shapes = (
        f"{order} {schema}{joint}{given}",
        f"{given}{random.choice(('. ', '; ', chr(10)))}{order} {schema}",
        f"{schema}{joint}{order}{joint}{given}",
        f"{order} {random.choice(('for', 'of', 'from'))} {given} {schema}",
    )
    return random.choice(shapes)


def answer(fields: list[Field]) -> str:
    """The object."""
    return json.dumps({field.key: field.value for field in fields})


def json_schema(fields: list[Field]) -> str:
    """The fields as a JSON Schema."""
    properties = {field.key: {"type": field.type} for field in fields}
    return json.dumps(
        {"type": "object", "properties": properties, "required": [field.key for field in fields]}
    )


def _listed(fields: list[Field], form: str, joint: str = ", ") -> str:
    return joint.join(form.format(key=field.key, type=field.type) for field in fields)


SCHEMAS = (
    lambda fields: f"with the fields {_listed(fields, '{key} ({type})')}",
    lambda fields: f"with fields {_listed(fields, '{key}')}",
    lambda fields: f"with {_listed(fields, '{key} as {type}', ' and ')}",
    lambda fields: f"with the keys {_listed(fields, '{key}', ' and ')}",
    lambda fields: f"for this schema: {json_schema(fields)}",
    lambda fields: f"that fits the schema {json_schema(fields)}",
    lambda fields: f"schema {json_schema(fields)}",
    lambda fields: f"like {{{_listed(fields, '{key}: {type}')}}}",
    lambda fields: "{" + _listed(fields, '"{key}": {type}') + "}",
    lambda fields: f"containing {_listed(fields, '{key}: {type}')}",
    lambda fields: f"having {_listed(fields, 'a {type} {key}', ' and ')}",
    lambda fields: f"(properties {_listed(fields, '{key}:{type}')})",
)


def _given(fields: list[Field], random: Random) -> str:
    form = random.choice(
        (
            "{key} is {value}",
            "{key} {value}",
            "{key}: {value}",
            "{key} = {value}",
            "the {key} is {value}",
            "{key} of {value}",
            "{key}={value}",
            "{value} for {key}",
            "its {key} is {value}",
            "{value} is the {key}",
            "{key} should be {value}",
            'the {key} is "{value}"',
        )
    )
    order = list(fields)
    if random.random() < 0.2:
        random.shuffle(order)
    return random.choice((", ", " and ", "; ", ", ")).join(
        form.format(key=field.key.replace("_", random.choice("_ ")), value=field.shown) for field in order
    )


def _value(kind: str, random: Random) -> Any:
    if kind == "name":
        return person(random) if random.random() < 0.7 else f"{person(random)} {person(random)}"
    if kind == "place":
        return random.choice(PLACES) if random.random() < 0.5 else invented(random).capitalize()
    if kind == "word":
        words = [
            random.choice((*WORDS, *NAMES[:9])) if random.random() < 0.6 else invented(random)
            for _ in range(random.choice((1, 1, 1, 2)))
        ]
        return " ".join(words)
    if kind == "integer":
        return random.choice(
            (random.randint(0, 99), random.randint(0, 9), random.randint(100, 2100), random.randint(0, 99999))
        )
    if kind == "number":
        return round(random.uniform(0, random.choice((1, 10, 100, 1000))), random.choice((1, 2)))
    return random.random() < 0.5
