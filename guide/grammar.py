"""A small grammar of sentences.

``(a|b)`` is a choice, ``<name>`` a list of words from a lexicon, ``[slot]`` a value that is sampled for every
sentence. A pattern can be sampled, and converted to a regular expression that matches all its sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

VALUE = " ?[a-z0-9]+(?: [a-z0-9]+){0,2} ?"  # "phi-3-mini" has three words in its normal form
NUMBER = " ?[0-9]+(?: [0-9]+)? ?"
SLOT_REGEX = dict.fromkeys(
    [
        "port",
        "ctx",
        "slots",
        "layers",
        "count",
        "temp",
        "topk",
        "topp",
        "minp",
        "seed",
        "number",
        "year",
        "exit.code",
    ],
    NUMBER,
) | {"rare": "(?!)"}  # no real word is an invented one
_TOKEN = re.compile(r"[()|]|<[a-z]+>|\[[a-z.]+\]|[^()|<\[]+|.")


@dataclass(frozen=True)
class Pattern:
    """A choice of sequences; an item is text, a slot's name in brackets, or a pattern."""

    branches: tuple[tuple[str | Pattern, ...], ...]

    def sample(self, random: Random, slot: Callable[[str], str]) -> str:
        """One sentence, its spaces not yet tidied."""
        return "".join(_item(item, random, slot) for item in random.choice(self.branches))

    def regex(self, hole: str = "", slots: Mapping[str, str] = SLOT_REGEX) -> str:
        """Source of a regular expression that matches the normal forms of all sentences; ``@`` matches
        ``hole``, and a slot what ``slots`` says of it.
        """
        branches = ("".join(_item_regex(item, hole, slots) for item in branch) for branch in self.branches)
        return f"(?:{'|'.join(branches)})"


def parse(text: str, words: Mapping[str, str]) -> Pattern:
    """Read one pattern; ``<name>`` is looked up in ``words``.
    Raises KeyError for a name that is not there.
    """
    pattern, rest = _choice([match.group() for match in _TOKEN.finditer(text)], words)
    if rest:
        raise ValueError(f"unbalanced parenthesis in {text!r}")
    return pattern


def tidy(text: str) -> str:
    """Single spaces, none at the ends nor before a mark."""
    return re.sub(r" ([',.:;])", r"\1", " ".join(text.split()))


def normal(text: str) -> str:
    """Lower case, without punctuation: two wordings with equal normal forms are the same wording."""
    return tidy(re.sub(r"[^a-z0-9]+", " ", text.lower().replace("'", "")))


def _choice(tokens: list[str], words: Mapping[str, str]) -> tuple[Pattern, list[str]]:
    branches: list[list[str | Pattern]] = [[]]
    while tokens and tokens[0] != ")":
        token, *tokens = tokens
        if token == "|":
            branches.append([])
        elif token == "(":
            inner, tokens = _choice(tokens, words)
            branches[-1].append(inner)
            tokens = tokens[1:]
        elif token[0] == "<" and len(token) > 1:
            branches[-1].append(parse(words[token[1:-1]], words))
        else:
            branches[-1].append(token)
    return Pattern(tuple(tuple(branch) for branch in branches)), tokens


def _item(item: str | Pattern, random: Random, slot: Callable[[str], str]) -> str:
    if isinstance(item, Pattern):
        return item.sample(random, slot)
    return slot(item[1:-1]) if item[0] == "[" else item


def _item_regex(item: str | Pattern, hole: str, slots: Mapping[str, str]) -> str:
    if isinstance(item, Pattern):
        return item.regex(hole, slots)
    if item[0] == "[":
        return slots.get(item[1:-1], VALUE)
    return hole.join(" ?" + " ?".join(normal(part).split()) + " ?" for part in item.split("@"))
