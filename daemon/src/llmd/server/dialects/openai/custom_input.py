"""Converts between the input of a custom tool and the JSON arguments that the model writes."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Struct

INPUT = "input"
"""The only parameter, which holds the input of a custom tool."""
_OPENING = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
_HIGH, _LOW, _UNIT = "[dD][89abAB][0-9a-fA-F]{2}", "[dD][c-fC-F][0-9a-fA-F]{2}", "[0-9a-fA-F]{4}"
_WHOLE = re.compile(rf'(?:[^"\\]|\\["\\/bfnrt]|\\u{_HIGH}\\u{_LOW}|\\u(?!{_HIGH}|{_LOW}){_UNIT})*')
"""Complete characters: no part of an escape sequence, no half of a surrogate pair."""


class InputReader(Struct):
    """Decodes the input while the arguments arrive."""

    told: str = ""
    """The input that was returned so far."""
    held: str = ""
    """Received arguments that are not decoded yet."""
    is_open: bool = False
    """Whether the input has begun."""

    def feed(self, arguments: str) -> str:
        """Return the input in these further arguments, up to the last complete character."""
        self.held += arguments
        if not self.is_open:
            opening = _OPENING.match(self.held)
            if opening is None:
                return ""
            self.held, self.is_open = self.held[opening.end() :], True
        whole = _WHOLE.match(self.held)
        assert whole is not None
        self.held = self.held[whole.end() :]
        new: str = json.loads(f'"{whole[0]}"', strict=False)
        self.told += new
        return new

    def rest(self, arguments: str) -> str:
        """Return the remaining input, given all ``arguments``."""
        return input_of(arguments)[len(self.told) :]


def input_of(arguments: str) -> str:
    """Return the input of a custom tool; if a limit cut the call off, the input up to there."""
    try:
        match msgspec.json.decode(arguments):
            case {"input": str(text)}:
                return text
    except msgspec.DecodeError:
        reader = InputReader()
        reader.feed(arguments)
        if reader.is_open:
            return reader.told
    return arguments


def arguments_of(text: str) -> str:
    """Return the arguments that represent an input in the model's history."""
    return json.dumps({INPUT: text})
