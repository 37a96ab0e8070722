"""Turns what users wrote into the schema's types, and says what was expected."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, inspect

from llmd.config.schema import ByteSize

UNITS = {"": 1, "B": 1} | {
    f"{letter}{suffix}": base ** (power + 1)
    for power, letter in enumerate("KMGT")
    for suffix, base in (("B", 1000), ("iB", 1024), ("", 1024))
}


def decode(section: type[Struct], name: str, kind: inspect.Type, raw: Any) -> Struct:
    """Return ``section`` with the one field ``name`` read from ``raw``: a TOML value or text.

    Raises:
        ValueError: the value has another type or is out of range (``msgspec.ValidationError`` is one too).
    """
    if isinstance(kind, inspect.VarTupleType) and isinstance(raw, str):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    return msgspec.convert({name: raw}, section, strict=False, dec_hook=_byte_size)


def _byte_size(kind: type, raw: Any) -> Any:
    """Decode the schema's one type that msgspec does not know."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(raw))
    if kind is not ByteSize or isinstance(raw, bool) or match is None or match[2] not in UNITS:
        raise ValueError(raw)
    return ByteSize(float(match[1]) * UNITS[match[2]])


def expected_form(kind: inspect.Type) -> str:
    """The expected form of a value, in words."""
    match kind:
        case inspect.UnionType(types=types):
            form = " or ".join(expected_form(t) for t in types if not isinstance(t, inspect.NoneType))
        case inspect.IntType(ge=ge):
            form = "an integer" if ge is None else f"an integer of at least {ge}"
        case inspect.FloatType(ge=ge, gt=gt):
            form = f"a number of at least {ge:g}" if ge is not None else f"a number above {gt:g}"
        case inspect.BoolType():
            form = "true or false"
        case inspect.LiteralType(values=choices):
            form = "one of " + ", ".join(map(str, choices))
        case inspect.VarTupleType():
            form = "a list, or values separated by commas"
        case inspect.CustomType():
            form = "a number of bytes, such as 8GiB"
        case _:
            form = "text"
    return form
