"""JSON objects for a schema: the request names fields and gives their values, the answer is the object.

records.toml has the wordings.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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

_WORDINGS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "records.toml").read_text(encoding="utf-8")
)
ORDERS: list[str] = _WORDINGS["orders"]
OBJECTS: list[str] = _WORDINGS["objects"]
LISTS: list[list[str]] = _WORDINGS["lists"]
OWN_LISTS: list[list[str]] = _WORDINGS["own_lists"]
SCHEMAS: list[str] = _WORDINGS["schemas"]
OWN_SCHEMAS: list[str] = _WORDINGS["own_schemas"]
DATA: list[str] = _WORDINGS["data"]
TAILS: list[str] = _WORDINGS["tails"]
FORMS: list[list[str]] = _WORDINGS["forms"]
TABLES: list[str] = _WORDINGS["tables"]
TOLD: dict[str, list[str]] = _WORDINGS["told"]
TOLD_BY_TYPE: dict[str, list[str]] = _WORDINGS["told_by_type"]


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


def _schema(fields: list[Field], lists: list[list[str]], schemas: list[str], random: Random) -> str:
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
