"""Finds the few patterns that may match a text, by the text's words, without compiling any pattern.

A pattern can only match a text each of whose words is made of the pattern's own words. Few patterns have all
of them; only these need a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from string import ascii_lowercase, digits

from guide.grammar import VALUE, Pattern, normal

_CLASSES = {"[a-z0-9]": frozenset(ascii_lowercase + digits), "[0-9]": frozenset(digits)}


class Candidates:
    """Patterns by the words in them. ``slots`` are the regular expressions of their slots."""

    def __init__(self, patterns: Sequence[Pattern], slots: Sequence[Mapping[str, str]]) -> None:
        numbers: dict[str, list[int]] = {}
        for number, (pattern, its_slots) in enumerate(zip(patterns, slots, strict=True)):
            for part in set(_parts(pattern, its_slots)):
                numbers.setdefault(part, []).append(number)
        self._all = (1 << len(patterns)) - 1
        self._having = {part: _bits(those, len(patterns)) for part, those in numbers.items()}
        self._making = cache(self._that_make)

    def of(self, text: str) -> Iterator[int]:
        """Numbers, ascending, of all patterns that can match a text in normal form, and perhaps of others."""
        found = self._all
        for word in text.split():
            found &= self._making(word)
        while found:
            lowest = found & -found
            yield lowest.bit_length() - 1
            found ^= lowest

    def _that_make(self, word: str) -> int:
        """A bit for each pattern whose words, one or several joined, make this one, as "stop" and "s" do."""
        made = [self._all]
        for end in range(1, len(word) + 1):
            parts = (made[start] & self._having.get(word[start:end], 0) for start in range(end))
            made.append(_either(parts))
        return made[-1]


def _parts(pattern: Pattern, slots: Mapping[str, str]) -> Iterator[str]:
    """Yield each word of a pattern; those of a slot that takes any word or number are its characters."""
    for branch in pattern.branches:
        for item in branch:
            if isinstance(item, Pattern):
                yield from _parts(item, slots)
            elif item[0] == "[":
                yield from _slot_parts(slots.get(item[1:-1], VALUE))
            else:
                yield from _text_parts(item)


@cache
def _text_parts(text: str) -> tuple[str, ...]:
    return tuple(normal(text).split())


@cache
def _slot_parts(expression: str) -> frozenset[str]:
    classes = {found: _CLASSES[found] for found in re.findall(r"\[.*?\]", expression)}
    words = re.findall("[a-z0-9]+", re.sub(r"\[.*?\]|\{.*?\}", " ", expression))
    return frozenset(words).union(*classes.values())


def _bits(numbers: Iterable[int], count: int) -> int:
    """Return an integer with these bits of ``count`` set."""
    bits = bytearray(count // 8 + 1)
    for number in numbers:
        bits[number // 8] |= 1 << number % 8
    return int.from_bytes(bits, "little")


def _either(all_bits: Iterable[int]) -> int:
    either = 0
    for bits in all_bits:
        either |= bits
    return either
