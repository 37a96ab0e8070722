"""Replaces words by others that mean the same, so that a topic is recognised in words that no pattern has.

Source: synonym replacement of Wei and Zou 2019, "EDA: Easy Data Augmentation Techniques".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random

RATE = 0.25  # of the words that have a synonym


def reword(text: str, kept: Iterable[str], random: Random) -> str:
    """Replace some words of a text in lower case by synonyms; a text with a value of ``kept`` that holds such
    a word stays. A word after ``llmd`` or a hyphen may be a command's or a flag's name and stays, too.
    """
    words, synonyms = _words()
    if any(words.search(value) for value in kept):
        return text

    def replaced(match: re.Match[str]) -> str:
        return random.choice(synonyms[match[0]]) if random.random() < RATE else match[0]

    return words.sub(replaced, text)


@cache
def _words() -> tuple[re.Pattern[str], dict[str, list[str]]]:
    """An expression that finds every word of the lists, the longest first, and the synonyms of each."""
    path = Path(__file__).with_name("synonyms.toml")
    synonyms: dict[str, list[str]] = {}
    for group in tomllib.loads(path.read_text(encoding="utf-8"))["groups"]:
        members = group.split("|")
        for word in members:
            synonyms.setdefault(word, []).extend(other for other in members if other != word)
    either = "|".join(re.escape(word) for word in sorted(synonyms, key=len, reverse=True))
    return re.compile(rf"(?<![\w'-])(?<!llmd )(?:{either})(?![\w'-])"), synonyms
