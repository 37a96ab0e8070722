"""Parse JavaScript's regular expressions, which JSON schemas use, into expressions that can be combined.

What is not a matter of characters alone (look-around, word boundaries, backreferences, Unicode properties) is
rejected. Source: ECMA-262, section 22.2.1.
"""

from __future__ import annotations

import re

from llmd.api.errors import GrammarError
from llmd.grammar.texts.characters import BEGIN, CHARACTERS, END, Ranges, inverted, joined
from llmd.grammar.texts.expressions import Expression, Expressions

MAX_REPEATS = 300

_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_NAMED = {
    "d": _DIGITS, "D": inverted(_DIGITS), "s": _SPACE, "S": inverted(_SPACE), "w": _WORD, "W": inverted(_WORD),
}  # fmt: skip
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_NUMBERED = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|c([A-Za-z])")
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\((?:\?(?::|<[A-Za-z_$][\w$]*>))?(?!\?)")


def read_regex(pattern: str, make: Expressions) -> Expression:
    """Parse a pattern, with the marks `BEGIN` and `END` for ``^`` and ``$``.

    Raises:
        GrammarError: the pattern is malformed, or uses a rejected feature.
    """
    return _Reader(pattern, make).read()


class _Reader:
    def __init__(self, pattern: str, make: Expressions) -> None:
        self._pattern = pattern
        self._make = make
        self._place = 0

    def read(self) -> Expression:
        found = self._choice()
        if self._place < len(self._pattern):
            raise self._refusal("an unopened parenthesis")
        return found

    def _choice(self) -> Expression:
        options = [self._sequence()]
        while self._takes("|"):
            options.append(self._sequence())
        return self._make.union(options)

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while (sign := self._next()) not in {"", "|", ")"}:
            part = self._repeated(self._atom(sign))
            is_mark = part.ranges in (BEGIN, END)
            if not (is_mark and parts and parts[-1] is part):  # ^^ is ^
                parts.append(part)
        return self._make.sequence(*parts)

    def _atom(self, sign: str) -> Expression:
        if sign == "(":
            return self._group()
        self._place += 1
        if sign == "[":
            return self._make.characters(self._class())
        if sign == "\\":
            return self._make.characters(self._escape(is_in_class=False))
        if sign in "*+?":
            raise self._refusal(f"{sign} with nothing to repeat")
        special = {".": inverted(_LINE_ENDS), "^": BEGIN, "$": END}
        return self._make.characters(special.get(sign, _single(ord(sign))))

    def _group(self) -> Expression:
        opened = _GROUP.match(self._pattern, self._place)
        if opened is None:
            raise self._refusal("look-around")
        self._place = opened.end()
        found = self._choice()
        if not self._takes(")"):
            raise self._refusal("an unclosed parenthesis")
        return found

    def _repeated(self, part: Expression) -> Expression:
        while (bounds := self._bounds()) is not None:
            least, most = bounds
            if max(least, most or 0) > MAX_REPEATS:
                raise self._refusal(f"more than {MAX_REPEATS} repetitions")
            more = self._make.repeat(part) if most is None else self._make.optional([part] * (most - least))
            part = self._make.sequence(*[part] * least, more)
        return part

    def _bounds(self) -> tuple[int, int | None] | None:
        """Read how often the last part is repeated; None if there is no quantifier."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        sign = self._next()
        if sign in simple:
            self._place += 1
            bounds = simple[sign]
        elif counted := _COUNT.match(self._pattern, self._place):
            self._place = counted.end()
            least = int(counted[1])
            bounds = (least, (int(counted[3]) if counted[3] else None) if counted[2] else least)
        else:
            return None
        self._takes("?")  # lazy: matches the same texts
        return bounds

    def _class(self) -> Ranges:
        is_inverted = self._takes("^")
        found: list[tuple[int, int]] = []
        while not self._takes("]"):
            first = self._member()
            if self._next() == "-" and self._pattern[self._place + 1 : self._place + 2] not in {"", "]"}:
                self._place += 1
                last = self._member()
                is_range = _is_single(first) and _is_single(last) and first[0][0] <= last[0][0]
                if not is_range:
                    raise self._refusal("an invalid range of characters")
                found.append((first[0][0], last[0][1]))
            else:
                found += first
        ranges = joined(found)
        return inverted(ranges) if is_inverted else ranges

    def _member(self) -> Ranges:
        sign = self._next()
        if not sign:
            raise self._refusal("an unclosed class")
        self._place += 1
        return self._escape(is_in_class=True) if sign == "\\" else _single(ord(sign))

    def _escape(self, *, is_in_class: bool) -> Ranges:
        if numbered := _NUMBERED.match(self._pattern, self._place):
            self._place = numbered.end()
            letter = numbered[4]
            digits = numbered[1] or numbered[2] or numbered[3]
            code = ord(letter) % 32 if letter else int(digits, 16)
            if not any(first <= code <= last for first, last in CHARACTERS):
                raise self._refusal("a lone surrogate")
            return _single(code)
        sign = self._next()
        self._place += 1
        if sign in _NAMED and sign:
            return _NAMED[sign]
        if sign == "b" and is_in_class:
            return _single(8)
        if sign in _CONTROLS and sign:
            return _single(_CONTROLS[sign])
        if not sign or sign.isalnum():
            raise self._refusal(_UNREADABLE.get(sign, f"\\{sign}"))
        return _single(ord(sign))

    def _next(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _takes(self, sign: str) -> bool:
        found = self._next() == sign
        self._place += found
        return found

    def _refusal(self, what: str) -> GrammarError:
        return GrammarError(
            f"the pattern {self._pattern} has {what}, so it cannot be combined with other string keywords of the schema",
            hint="write it without, or check it in the answer",
        )


_UNREADABLE = {"b": "a word boundary", "B": "a word boundary", "p": "a Unicode property", "P": "a Unicode property"}  # fmt: skip
_UNREADABLE |= dict.fromkeys("123456789k", "a backreference")


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _single(code: int) -> Ranges:
    return ((code, code),)
