"""Converts raw values to the schema's types and describes the expected form."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct, inspect

from llmd.api.decoding import prepared
from llmd.config.durations import parse_duration

UNITS = {"": 1, "B": 1} | {
    f"{letter}{suffix}": base ** (power + 1)
    for power, letter in enumerate("KMGT")
    for suffix, base in (("B", 1000), ("iB", 1024), ("", 1024))
}

MAX_NEAREST = 4


def decode(section: type[Struct], name: str, kind: inspect.Type, raw: Any) -> Struct:
    """Return a ``section`` whose field ``name`` is read from ``raw``, a TOML value or text.

    Raises:
        ValueError: the value has the wrong type or is out of range (``msgspec.ValidationError`` is a
        subclass).
    """
    if isinstance(kind, inspect.VarTupleType) and isinstance(raw, str):
        raw = listed(raw)
    elif is_byte_size(kind) and isinstance(raw, str):
        raw = parse_bytes(raw)
    elif is_duration(kind) and isinstance(raw, str):
        raw = parse_duration(raw)
    if raw not in (choices := choices_of(kind)) and choices:
        raise ValueError(raw)
    return msgspec.convert({name: raw}, prepared(section), strict=False)


def listed(text: str) -> list[str]:
    """Return the values of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_byte_size(kind: inspect.Type) -> bool:
    """Whether the type is a number of bytes."""
    return _has_unit(kind, "bytes")


def is_duration(kind: inspect.Type) -> bool:
    """Whether the type is a duration."""
    return _has_unit(kind, "duration")


def choices_of(kind: inspect.Type) -> Sequence[str]:
    """Return the names that a setting with many of them may have; empty for other types."""
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(choices_of, kind.types)), ())
    return (kind.extra or {}).get("choices", ()) if isinstance(kind, inspect.Metadata) else ()


def _has_unit(kind: inspect.Type, unit: str) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_has_unit(member, unit) for member in kind.types)
    return isinstance(kind, inspect.Metadata) and (kind.extra or {}).get("unit") == unit


def parse_bytes(text: str) -> int:
    """Parse a size such as ``8GiB``, ``500MB`` or ``17``.

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2] not in UNITS:
        raise ValueError(text)
    return int(float(match[1]) * UNITS[match[2]])


def expected_instead(kind: inspect.Type, raw: Any) -> str:
    """Describe the expected form of a value to someone who gave another one: of many names, the nearest."""
    choices = choices_of(kind)
    if not choices:
        return expected_form(kind)
    near = difflib.get_close_matches(str(raw), choices, n=MAX_NEAREST, cutoff=0.4) or choices[:MAX_NEAREST]
    return f"one of {len(choices)} names; the nearest are {', '.join(near)}"


def expected_form(kind: inspect.Type) -> str:
    """Describe the expected form of a value."""
    match kind:
        case inspect.UnionType(types=types):
            form = " or ".join(expected_form(t) for t in types if not isinstance(t, inspect.NoneType))
        case inspect.IntType(ge=ge):
            form = "an integer" if ge is None else f"an integer of at least {ge}"
        case inspect.FloatType(ge=ge, gt=gt, le=le):
            form = f"a number of at least {ge:g}" if ge is not None else f"a number above {gt:g}"
            form += "" if le is None else f" and at most {le:g}"
        case inspect.BoolType():
            form = "true or false"
        case inspect.LiteralType(values=choices):
            form = "one of " + ", ".join(map(str, choices))
        case inspect.VarTupleType():
            form = "a list or comma-separated values"
        case inspect.Metadata(extra={"choices": choices}):
            form = "one of " + ", ".join(choices)
        case inspect.Metadata(extra={"form": described}):
            form = described
        case _:
            form = "text"
    return form
