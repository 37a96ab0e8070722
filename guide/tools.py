"""Tools to offer and to call: families with natural wordings (``tools.toml``), under many names and keys."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_uppercase
from typing import Any

from guide import records
from guide.grammar import NUMBER, VALUE, Pattern, normal, parse, tidy
from guide.record_words import WORDS
from guide.slots import invented
from guide.tool_text import Call

FAMILIES = Path(__file__).parent / "tools.toml"
DAYS = "today tomorrow monday tuesday wednesday thursday friday saturday sunday".split()
PHRASES = (
    "the {} is {}", "{} and {}", "meet me at the {} of {}", "buy {} and {}", "dinner is ready", "i am late", "the {} {}", "{}", "call the {}", "we need more {}", "i forgot the {}", "no {} today", "see you at {}", "the {} does not work",
    "how to clean a {}", "best {} in {}", "cheap {}", "the {} is broken", "thank you for the {}", "where is the {}", "good morning", "history of {}", "pay for the {}",
)  # fmt: skip
SUFFIXES = (".txt", ".md", ".csv", ".py", ".json", ".log")
POLITE = ("please {}", "can you {}", "could you {}", "{} please", "hey, {}", "hi! {}", "now {}", "i want you to {}", "would you {}", "{}, thanks")  # fmt: skip


def _phrase(random: Random) -> str:
    form = random.choice(PHRASES)
    return form.format(*(random.choice(WORDS) if random.random() < 0.7 else invented(random) for _ in "ab"))


def _path(random: Random) -> str:
    parts = [random.choice((random.choice(WORDS), invented(random))) for _ in range(random.choice((1, 1, 2)))]
    return "/".join(parts) + random.choice(SUFFIXES)


def _ticker(random: Random) -> str:
    return "".join(random.choices(ascii_uppercase, k=random.randint(2, 5)))


# Kinds of values: the JSON type, and how one is drawn.
KINDS: dict[str, tuple[str, Callable[[Random], Any]]] = {
    **{kind: (records.TYPES[kind], draw) for kind, draw in records.VALUES.items()},
    "small": ("integer", lambda random: random.randint(1, random.choice((5, 12, 30, 60)))),
    "percent": ("integer", lambda random: random.randint(0, 100)),
    "number": (
        "number",
        lambda random: random.choice((random.randint(0, 300), round(random.uniform(0, 100), 1))),
    ),
    "date": (
        "string",
        lambda random: random.choice((records.VALUES["date"](random), random.choice(DAYS))),
    ),
    "phrase": ("string", _phrase),
    "path": ("string", _path),
    "ticker": ("string", _ticker),
    "company": ("string", lambda random: random.choice((_ticker, records.VALUES["name"]))(random)),
    "folder": ("string", lambda random: random.choice(("", "/")) + _path(random).partition(".")[0]),
}


@dataclass(frozen=True)
class Offer:
    """One tool as a request defines it, and ``ask``: a wording that wants it, and the call that answers."""

    family: str
    function: dict[str, Any]
    ask: Callable[[Random], tuple[str, Call]]

    @property
    def name(self) -> str:
        return str(self.function["name"])


@dataclass(frozen=True)
class Family:
    """A tool under its many names. ``arguments``: the kind of each slot, and the keys that it may have."""

    id: str
    name: Pattern
    description: Pattern
    arguments: dict[str, tuple[str, Pattern]]
    optional: tuple[str, ...]
    asks: tuple[Pattern, ...]

    def offer(self, random: Random) -> Offer:
        """The tool with a name, a description and keys drawn."""
        keys = {slot: _plain(key, random) for slot, (_, key) in self.arguments.items()}
        members = {keys[slot]: member(kind) for slot, (kind, _) in self.arguments.items()}
        required = [keys[slot] for slot in self.arguments if slot not in self.optional]
        definition = function(
            _plain(self.name, random), _plain(self.description, random), members, required, random
        )
        return Offer(self.id, definition, lambda random: self._ask(str(definition["name"]), keys, random))

    def slot_regexes(self) -> dict[str, str]:
        """What the slots of the wordings match, in normal form."""
        return {slot: _regex(kind) for slot, (kind, _) in self.arguments.items()}

    def _ask(self, name: str, keys: dict[str, str], random: Random) -> tuple[str, Call]:
        values: dict[str, Any] = {}

        def slot(name: str) -> str:
            if name not in values:
                values[name] = value(self.arguments[name][0], random)
            return str(values[name])

        text = tidy(random.choice(self.asks).sample(random, slot))
        call = (name, {keys[slot]: values[slot] for slot in keys if slot in values})
        return dressed(text, random, kept=tuple(map(str, values.values()))), call


def load_families() -> list[Family]:
    """Read tools.toml."""
    entries = tomllib.loads(FAMILIES.read_text(encoding="utf-8"))
    return [
        Family(
            id,
            parse(entry["name"], {}),
            parse(entry["description"], {}),
            {slot: (kind, parse(key, {})) for slot, (kind, key) in entry["arguments"].items()},
            tuple(entry.get("optional", ())),
            tuple(parse(text, {}) for text in entry["ask"]),
        )
        for id, entry in entries.items()  # noqa: A001
    ]


def dressed(text: str, random: Random, kept: tuple[str, ...] = ()) -> str:
    """Courtesy, capitals and marks around a wording; a value of ``kept`` keeps its first letter."""
    if random.random() < 0.25:
        text = random.choice(POLITE).format(text)
    if random.random() < 0.5 and not text.startswith(kept):
        text = text[0].upper() + text[1:]
    return text + random.choice(("", "", "", ".", "?", "!"))


def function(
    name: str, description: str, members: dict[str, Any], required: list[str], random: Random
) -> dict[str, Any]:
    """A definition, mostly with its description."""
    schema = {"type": "object", "properties": members, "required": required}
    told = {"description": description + random.choice(("", "."))} if random.random() < 0.9 else {}
    return {"name": name, **told, "parameters": schema}


def _plain(pattern: Pattern, random: Random) -> str:
    return tidy(pattern.sample(random, str))


def member(kind: str) -> dict[str, Any]:
    """The JSON Schema of an argument; a kind with bars is an enumeration."""
    return {"type": "string", "enum": kind.split("|")} if "|" in kind else {"type": KINDS[kind][0]}


def value(kind: str, random: Random) -> Any:
    """A value of a kind."""
    return random.choice(kind.split("|")) if "|" in kind else KINDS[kind][1](random)


def _regex(kind: str) -> str:
    if "|" in kind:
        return f" ?(?:{'|'.join(map(normal, kind.split('|')))}) ?"
    return NUMBER if KINDS[kind][0] != "string" else VALUE
