"""JSON objects after a schema: the request names fields and gives their values, the answer is the object."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from guide.record_words import FIELDS, PLACES, WORDS
from guide.slots import NAMES, invented, person

KIND_WEIGHTS = (9, 6, 9, 1, 1, 1, 1, 12, 6, 6)  # in the order of FIELDS
TYPES = {
    "name": "string",
    "place": "string",
    "word": "string",
    "date": "string",
    "time": "string",
    "email": "string",
    "code": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
PLAIN_TYPES = {
    "string": ("string", "text", "str", "a string", "a text"),
    "integer": ("integer", "whole number", "int", "an integer", "a whole number"),
    "number": ("number", "decimal", "float", "a number", "a decimal number"),
    "boolean": ("boolean", "bool", "true or false", "a boolean", "true/false"),
}
ORDERS = (
    "make", "write", "give me", "return", "create", "produce", "build", "output", "generate", "print", "answer with", "fill in", "reply with", "i need", "format this as",
    "turn this into", "extract", "convert this to", "put this into", "respond with", "show me", "please write", "can you make", "construct", "compose", "i want", "i'd like",
    "could you write", "would you make", "please give me", "please return", "can i have", "let me have", "encode this as", "express this as", "transform this into", "draft", "emit",
    "send back", "send me", "get me", "prepare", "assemble", "form", "render", "represent this as", "save this as", "store this as", "parse this into", "rewrite this as",
    "change this to", "summarize this as", "we need", "my script needs", "the api expects", "translate this to", "provide", "deliver", "kindly create", "help me write",
)  # fmt: skip
OBJECTS = (
    "a JSON object", "a JSON object", "JSON", "JSON", "json", "a json object", "one JSON object", "a JSON record", "valid JSON", "an object in JSON", "json data", "a JSON document",
    "a single JSON object", "a small JSON object", "a json record", "plain JSON", "strict JSON", "pure JSON", "some JSON", "JSON output", "a JSON entry", "a JSON dictionary",
    "a JSON structure", "the JSON", "the JSON object", "a json", "a flat JSON object", "compact JSON", "a json dict", "an object", "well-formed JSON", "raw json",
)  # fmt: skip
# Behind an order, and on their own.
# `@` is where the fields or the schema go; `{key}` and `{type}` are a field's.
LISTS = (
    ("with the fields @", "{key} ({type})", ", "), ("with fields @", "{key}", ", "), ("with @", "{key} as {type}", " and "), ("with the keys @", "{key}", " and "), ("like {@}", "{key}: {type}", ", "),
    ("containing @", "{key}: {type}", ", "), ("having @", "{key} of type {type}", " and "), ("(properties @)", "{key}:{type}", ", "), ("with @", "{key}", ", "), ("with @", "{key}", " and "),
    ("that has the keys @", "{key}", ", "), ("that has @", "{key} ({type})", " and "), ("whose keys are @", "{key}", ", "), ("with exactly these fields: @", "{key}", ", "), ("using the keys @", "{key}", ", "),
    ("with only @", "{key}", " and "), ("with the properties @", "{key} ({type})", ", "), ("with the members @", "{key}, {type}", "; "), ("in the form {@}", '"{key}": {type}', ", "),
    ("shaped like {@}", '"{key}": "{type}"', ", "), ("of the shape {@}", "{key}: {type}", ", "), ("including @", "{key}", ", "), ("with these keys: @", "{key} - {type}", "; "),
    ("where @", "{key} is {type}", " and "), ("in which @", "{key} is {type}", ", "), ("(@)", "{key}", ", "), ("(@)", "{key} {type}", ", "), ("with the keys @", '"{key}"', ", "), ("with `@`", "{key}", "`, `"),
    ("that consists of @", "{key} ({type})", ", "), ("with attributes @", "{key}", ", "), ("which contains @", "{key}", " and "), ("with columns @", "{key}", ", "),
)  # fmt: skip
OWN_LISTS = (
    ("{@}", '"{key}": {type}', ", "), ("fields: @", "{key} ({type})", ", "), ("fields: @", "{key}", ", "), ("keys: @", "{key}", ", "), ("the keys are @", "{key}", " and "), ("the fields are @", "{key} ({type})", ", "),
    ("properties: @", "{key}: {type}", ", "), ("format: {@}", '"{key}": {type}', ", "), ("shape: {@}", "{key}: {type}", ", "), ("template: {@}", '"{key}": ...', ", "), ("@", "{key}: {type}", "\n"), ("fields:\n@", "- {key} ({type})", "\n"),
    ("structure: {@}", '"{key}": "{type}"', ","), ("types: @", "{key} {type}", ", "), ("i need these keys: @", "{key}", ", "), ("the object has @", "{key} ({type})", " and "), ("use the keys @", "{key}", ", "), ("type: {@}", "{key}: {type}", "; "),
)  # fmt: skip
SCHEMAS = (
    "for this schema: @", "that fits the schema @", "schema @", "for the schema @", "matching @", "that matches this JSON schema: @", "valid under @", "according to the schema @", "following this schema @",
    "which validates against @", "that obeys @", "conforming to @", "by this schema: @", "as described by @", "with this JSON Schema: @", "(schema: @)", "under the schema\n@",
)  # fmt: skip
OWN_SCHEMAS = (
    "schema: @", "schema:\n@", "JSON schema: @", "@", "the schema is @", "here is the schema: @", "my schema: @", "use this schema: @", "given the schema @", "json schema\n@", "follow this schema: @",
    "response format: @", "this is my JSON Schema: @",
)  # fmt: skip
DATA = ("", "", "", "", "", "", "data: ", "values: ", "input: ", "text: ", "here is the data: ", "the values: ", "facts: ", "the data is ", "content: ", "info: ", "details: ", "record: ", "from this: ", "it says: ")  # fmt: skip
TAILS = (
    "only the JSON", "no other text", "nothing else", "JSON only", "only JSON please", "just the JSON", "no explanation", "no comments", "without any other text", "just the object", "no prose", "and nothing more",
    "do not explain", "answer with the object alone", "no extra keys", "thanks", "please", "raw JSON, no text around it", "don't add anything", "keep the values as they are", "no markdown", "reply in JSON only",
)  # fmt: skip
# How a request gives the values: the form of one, and what stands between them.
FORMS = (
    ("{key} is {value}", ", "), ("{key} is {value}", " and "), ("{key} {value}", ", "), ("{key} {value}", "; "), ("{key}: {value}", ", "), ("{key}: {value}", "; "), ("{key}: {value}", "\n"), ("- {key}: {value}", "\n"),
    ("{key} = {value}", ", "), ("{key} = {value}", "; "), ("{key}={value}", ", "), ("{key}={value}", " "), ("{key}={value}", "&"), ("{key}={value}", "; "), ("{key}={value}", "\n"), ("the {key} is {value}", ", "),
    ("the {key} is {value}", " and "), ("{key} of {value}", ", "), ("{key} of {value}", " and "), ("{value} for {key}", ", "), ("its {key} is {value}", " and "), ("{value} is the {key}", ", "), ("{value} is the {key}", " and "),
    ("{key} should be {value}", ", "), ("{key} should be {value}", " and "), ("{key}: {value}", " | "), ("{key} - {value}", ", "), ("{key} -> {value}", ", "), ("{key} => {value}", ", "), ("{key} equals {value}", " and "),
    ("{key} ({value})", ", "), ("{value} ({key})", ", "), ("set {key} to {value}", ", "), ("set {key} to {value}", " and "), ("use {value} as {key}", ", "), ("use {value} for the {key}", " and "), ("{value} as the {key}", ", "),
    ("the {key} was {value}", ". "), ("the {key} is {value}", ". "), ("my {key} is {value}", " and "), ("our {key} is {value}", ", "), ("{key} must be {value}", ", "), ("a {key} of {value}", " and "), ("{key}, {value}", "; "),
    ("put {value} in {key}", ", "), ("{key}:{value}", " "), ("{key}:{value}", ","), ("for {key} take {value}", ", "), ("<{key}>{value}</{key}>", ""), ("--{key} {value}", " "),
)  # fmt: skip
TABLES = (" | ", ", ", ",", "\t", "; ", ";")
# What a sentence says of its subject; any other key has a form by its type.
TOLD = {
    "age": ("is {value}", "is {value} years old", "turned {value}"), "city": ("lives in {value}", "is from {value}", "comes from {value}"), "country": ("lives in {value}", "comes from {value}"), "town": ("lives in {value}",),
    "village": ("lives in {value}",), "home": ("lives in {value}",), "hometown": ("grew up in {value}",), "birthplace": ("was born in {value}",), "job": ("works as a {value}", "is a {value}"), "profession": ("works as a {value}",),
    "role": ("works as {value}",), "company": ("works for {value}",), "department": ("works in {value}",), "team": ("plays for {value}", "is in team {value}"), "hobby": ("likes {value}",), "sport": ("plays {value}",),
    "language": ("speaks {value}",), "pet": ("owns a {value}",), "instrument": ("plays the {value}",), "birth_year": ("was born in {value}",), "year_of_birth": ("was born in {value}",), "children": ("has {value} children",),
    "price": ("costs {value}", "sells for {value}"), "cost": ("costs {value}",), "total_price": ("costs {value} in all",), "weight": ("weighs {value}",), "weight_kg": ("weighs {value} kg",), "height": ("is {value} tall",),
    "height_m": ("is {value} m tall",), "length": ("is {value} long",), "width": ("is {value} wide",), "depth": ("is {value} deep",), "color": ("is {value}", "is painted {value}"), "colour": ("is {value}",), "material": ("is made of {value}",),
    "pages": ("has {value} pages",), "page_count": ("has {value} pages",), "seats": ("has {value} seats",), "wheels": ("has {value} wheels",), "rooms": ("has {value} rooms",), "doors": ("has {value} doors",), "floor": ("is on floor {value}",),
    "population": ("has {value} inhabitants",), "stock": ("has {value} in stock",), "points": ("has {value} points", "scored {value} points"), "score": ("scored {value}",), "goals": ("scored {value} goals",), "rank": ("is number {value}",),
    "email": ("writes from {value}",), "phone": ("can be called at {value}",), "birthday": ("was born on {value}",), "salary": ("earns {value}",), "speed": ("drives {value} an hour",), "port": ("listens on port {value}",), "title": ("is called {value}",),
    "location": ("is in {value}",), "destination": ("goes to {value}",), "origin": ("comes from {value}",), "office": ("works in {value}",), "has_wifi": ("says {value} for {key}",), "has_garden": ("says {value} for {key}",), "capital": ("has the capital {value}",), "status": ("is {value}",), "brand": ("is made by {value}",),
}  # fmt: skip
TOLD_BY_TYPE = {
    "string": ("has the {key} {value}", "has {value} as {key}", "has {key} {value}"), "integer": ("has {value} as {key}", "shows {value} for {key}", "has {key} {value}"),
    "number": ("shows {value} for {key}", "has {value} as {key}", "has {key} {value}"), "boolean": ("has {key} {value}", "has {key} set to {value}", "has {value} for {key}"),
}  # fmt: skip


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
    kinds = random.choices(list(FIELDS), KIND_WEIGHTS, k=random.choice((1, 2, 2, 2, 3, 3, 3, 4)))
    keys: dict[str, str] = {}
    for kind in kinds:
        keys.setdefault(invented(random) if random.random() < 0.12 else random.choice(FIELDS[kind]), kind)
    return [Field(key, TYPES[kind], VALUES[kind](random)) for key, kind in keys.items()]


def request(fields: list[Field], random: Random) -> str:
    """One wording that names the schema and gives the values."""
    order = f"{random.choice(ORDERS)} {random.choice(OBJECTS)}"
    data = given(fields, random)
    facts = random.choice(DATA) + data
    joint, end = (
        random.choice((": ", ". ", "; ", " - ", "\n", ", ")),
        random.choice((". ", "; ", "\n", "\n\n")),
    )
    if random.random() < 0.6:
        schema = _schema(fields, LISTS, SCHEMAS, random)
        shapes = [f"{order} {schema}{joint}{facts}", f"{facts}{end}{order} {schema}"]
        shapes.append(f"{order} {random.choice(('for', 'of', 'from'))} {data}{joint}{schema}")
    else:
        schema = _schema(fields, OWN_LISTS, OWN_SCHEMAS, random)
        shapes = [f"{schema}{end}{order}{joint}{facts}", f"{facts}{end}{schema}{end}{order}"]
        shapes += [f"{order}{joint}{schema}{end}{facts}", f"{order}{joint}{facts}{end}{schema}"]
    tail = f"{random.choice(('. ', ', ', end))}{random.choice(TAILS)}" if random.random() < 0.2 else ""
    return random.choice(shapes) + tail


def answer(fields: list[Field]) -> str:
    """The object."""
    return json.dumps({field.key: field.value for field in fields})


def json_schema(fields: list[Field], *, indent: int | None = None, compact: bool = False) -> str:
    """The fields as a JSON Schema."""
    properties = {field.key: {"type": field.type} for field in fields}
    schema = {"type": "object", "properties": properties, "required": [field.key for field in fields]}
    return json.dumps(schema, indent=indent, separators=(",", ":") if compact else None)


def _schema(
    fields: list[Field], lists: tuple[tuple[str, str, str], ...], schemas: tuple[str, ...], random: Random
) -> str:
    if random.random() < 0.3:
        indent = 2 if random.random() < 0.1 else None
        text = json_schema(fields, indent=indent, compact=not indent and random.random() < 0.35)
        return random.choice(schemas).replace("@", text)
    wording, form, joint = random.choice(lists)
    style = random.choice((0, 0, 0, 1, 1, 2, 3, 4))
    texts = (form.format(key=field.key, type=PLAIN_TYPES[field.type][style]) for field in fields)
    return wording.replace("@", joint.join(texts))


def given(fields: list[Field], random: Random) -> str:
    """The values in a wording, each with its key unless they stand in a table."""
    kind = random.random()
    if kind < 0.1:
        return _table(fields, random)
    between, quote = random.choice("_ "), '"' if random.random() < 0.12 else ""
    texts = [
        (
            field,
            field.key.replace("_", between),
            f"{quote}{field.shown}{quote}" if field.type == "string" else field.shown,
        )
        for field in fields
    ]
    if random.random() < 0.2:
        random.shuffle(texts)
    if kind < 0.35:
        return _sentence(texts, random)
    form, joint = random.choice(FORMS)
    return joint.join(form.format(key=key, value=value) for _, key, value in texts)


def _table(fields: list[Field], random: Random) -> str:
    """Values in the order of the fields, mostly below their keys."""
    bar = random.choice(TABLES)
    values = bar.join(field.shown for field in fields)
    return values if random.random() < 0.3 else f"{bar.join(field.key for field in fields)}\n{values}"


def _sentence(texts: list[tuple[Field, str, str]], random: Random) -> str:
    """What a person or thing is and has: "Petra, who is 44 and lives in Bern"."""
    subject = next((text for text in texts if text[0].key in FIELDS["name"]), None)
    told = [
        random.choice(TOLD.get(field.key, TOLD_BY_TYPE[field.type])).format(key=key, value=value)
        for field, key, value in texts
        if not subject or field is not subject[0]
    ]
    if not told:
        return f"{texts[0][1]} {texts[0][2]}"
    who = (
        subject[2]
        if subject
        else random.choice(("it", "something that", "this one", "the thing", "one that"))
    )
    link = random.choice((" ", " ", ", who ", " who ")) if subject else " "
    last = random.choice((" and ", ", ", ", and ")) + told[-1] if told[:-1] else told[-1]
    return f"{who}{link}{', '.join(told[:-1])}{last}"


def _name(random: Random) -> str:
    return person(random) if random.random() < 0.7 else f"{person(random)} {person(random)}"


def _place(random: Random) -> str:
    return random.choice(PLACES) if random.random() < 0.5 else invented(random).capitalize()


def _word(random: Random) -> str:
    words = [
        random.choice((*WORDS, *NAMES[:9])) if random.random() < 0.6 else invented(random)
        for _ in range(random.choice((1, 1, 1, 2)))
    ]
    text = " ".join(words)
    return random.choice((text, text, text, text.capitalize(), text.title()))


def _integer(random: Random) -> int:
    ranges = ((0, 99, 1), (0, 9, 1), (100, 2100, 1), (0, 99999, 1), (1900, 2030, 1), (10, 5000, 10))
    return random.randrange(*random.choice(ranges))


def _number(random: Random) -> float:
    top = random.choice((1, 10, 100, 1000))
    return round(random.uniform(-top if random.random() < 0.05 else 0, top), random.choice((1, 2))) + 0.0


def _boolean(random: Random) -> bool:
    return random.random() < 0.5


def _code(random: Random) -> str:
    """A number or mark that is text."""
    forms = (
        f"{random.randint(1, 12)}.{random.randint(0, 9)}.{random.randint(0, 9)}",
        f"{invented(random)[:2].upper()}-{random.randint(10, 9999)}",
        f"0{random.randint(100, 999)}-{random.randint(1000, 99999)}",
        f"{random.choice('ABCDEFGHKLMRSTX')}{random.randint(1, 999)}",
    )
    return random.choice(forms)


def _date(random: Random) -> str:
    return f"{random.randint(1950, 2030)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"


def _time(random: Random) -> str:
    return f"{random.randint(0, 23):02d}:{random.randint(0, 59):02d}"


def _email(random: Random) -> str:
    who = random.choice((random.choice(NAMES), invented(random)))
    return f"{who}@{invented(random)}.{random.choice(('com', 'org', 'net', 'io'))}"


VALUES: dict[str, Callable[[Random], Any]] = {
    "name": _name, "place": _place, "word": _word, "integer": _integer, "number": _number, "boolean": _boolean,
    "date": _date, "time": _time, "email": _email, "code": _code,
}  # fmt: skip
