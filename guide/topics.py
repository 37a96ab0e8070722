"""What the guide is asked about, the right answers, and the ways to ask."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from guide.grammar import Pattern, parse, tidy
from guide.slots import EXIT_CODES, SLOTS
from guide.unreal import UNREAL

HERE = Path(__file__).parent
OUTSIDE = "outside"
KINDS = ("want", "noun", "ask", "free", "keys")
# Each answer that says that the guide does not know, or that llmd lacks something, begins with one of these.
REFUSALS = ("I don't know", "llmd cannot")


@dataclass(frozen=True)
class Topic:
    """One answer. ``slots`` are the values that it shows if the question names none; ``weight`` says how
    often it is sampled relative to the others.
    """

    name: str
    answer: str
    required: tuple[str, ...]
    slots: dict[str, str] = field(default_factory=dict)
    wordings: dict[str, tuple[Pattern, ...]] = field(default_factory=dict)
    weight: float = 1.0

    @property
    def refuses(self) -> bool:
        """Whether the truth is "I don't know" or "llmd cannot"."""
        return self.answer.startswith(REFUSALS)

    def render(self, text: str, values: dict[str, str]) -> str:
        """Answer or required string with the slots filled in."""
        for name, value in {**self.slots, **values}.items():
            text = text.replace(f"[{name}]", value)
        return text


@dataclass(frozen=True)
class Book:
    """All topics, and the frames that their words are put in."""

    topics: dict[str, Topic]
    frames: dict[str, tuple[Pattern, ...]]
    around: dict[str, tuple[Pattern, ...]]

    def ask(self, topic: Topic, random: Random) -> tuple[str, dict[str, str]]:
        """One wording in lower case, and the values of its slots."""
        values: dict[str, str] = {}

        def slot(name: str) -> str:
            return values.setdefault(name, "") or _draw(name, random, values)

        kinds = [kind for kind in KINDS if topic.wordings.get(kind)]
        kind = random.choices(kinds, [_SHARE[kind] * len(topic.wordings[kind]) ** 0.5 for kind in kinds])[0]
        text = random.choice(topic.wordings[kind]).sample(random, slot)
        if kind in self.frames:
            text = random.choice(self.frames[kind]).sample(random, slot).replace("@", text)
        return tidy(_shuffled(text, random) if kind == "keys" else text), values


_SHARE = {"want": 3.0, "noun": 1.5, "ask": 3.0, "free": 5.0, "keys": 0.7}


def load() -> Book:
    """Read topics, lexicon and frames. Raises KeyError for a word list that the lexicon lacks."""
    words = _toml("lexicon.toml")["words"] | _toml("absent.toml")["words"]
    frames = _toml("frames.toml")
    topics = dict(_topics(words))
    outside = _toml("outside.toml")
    topics[OUTSIDE] = _topic(OUTSIDE, outside, outside["words"])
    return Book(
        topics,
        {kind: _patterns(frames[kind], words) for kind in ("want", "noun")},
        {side: _patterns(frames[side], words) for side in ("before", "after")},
    )


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def _topics(words: dict[str, str]) -> Iterator[tuple[str, Topic]]:
    for path in sorted((HERE / "topics").glob("*.toml")):
        free = _toml(f"wordings/{path.name}")
        for name, entry in _toml(f"topics/{path.name}").items():
            yield name, _topic(name, {**entry, "free": free.get(name, [])}, words)


def _topic(name: str, entry: dict[str, Any], words: dict[str, str]) -> Topic:
    wordings = {kind: _patterns(entry.get(kind, []), words) for kind in KINDS}
    return Topic(
        name,
        entry["answer"],
        tuple(entry["required"]),
        entry.get("slots", {}),
        wordings,
        entry.get("weight", 1.0),
    )


def _patterns(texts: list[str], words: dict[str, str]) -> tuple[Pattern, ...]:
    return tuple(parse(text, words) for text in texts)


def _draw(name: str, random: Random, values: dict[str, str]) -> str:
    if name == "exit.code":
        values["exit.code"], values["exit.meaning"] = random.choice(EXIT_CODES)
    else:
        values[name] = (SLOTS | UNREAL)[name](random)
    return values[name]


def _shuffled(text: str, random: Random) -> str:
    words = text.split()
    if random.random() < 0.3:
        random.shuffle(words)
    return " ".join(words)
