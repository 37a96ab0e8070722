"""The input of a custom tool, from the arguments that a model writes: JSON with one text in it."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Struct

INPUT = "input"
"""The one parameter under which a model writes the input of a custom tool."""
_OPENING = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
_HIGH, _LOW, _UNIT = "[dD][89abAB][0-9a-fA-F]{2}", "[dD][c-fC-F][0-9a-fA-F]{2}", "[0-9a-fA-F]{4}"
_WHOLE = re.compile(rf'(?:[^"\\]|\\["\\/bfnrt]|\\u{_HIGH}\\u{_LOW}|\\u(?!{_HIGH}|{_LOW}){_UNIT})*')
"""Characters that are whole: neither a part of an escape, nor half of a pair."""


class InputReader(Struct):
    """Tells the input while its arguments come; ``told`` is what was told so far."""

    told: str = ""
    held: str = ""
    is_open: bool = False

    def feed(self, arguments: str) -> str:
        """The text that these further arguments are, up to the last character that is whole."""
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
        """What is left to be told once all ``arguments`` are there."""
        return input_of(arguments)[len(self.told) :]


def input_of(arguments: str) -> str:
    """The text that a model wrote for a custom tool: where a limit has cut the call, as much of it as came."""
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
    """The arguments that stand for an input in the history that a model reads."""
    return json.dumps({INPUT: text})
