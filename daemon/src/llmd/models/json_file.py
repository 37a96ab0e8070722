"""Read JSON objects of a model directory strictly: ambiguous content is refused."""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import CheckpointError
from llmd.models.files import read_bytes

T = TypeVar("T")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DAMAGED = "the file is damaged; copy it again from where the model came from"


def read_object(path: Path, *, max_bytes: int, allow_infinity: bool = False) -> dict[str, Any]:
    """Return the JSON object in a file of at most ``max_bytes``.

    Raises:
        CheckpointError: the file cannot be read, is too large, or `parse_object` refuses its content.
    """
    content = read_bytes(path, max_bytes=max_bytes)
    return parse_object(content, file=str(path), allow_infinity=allow_infinity)


def parse_object(
    content: bytes, *, file: str, what: str = "the file", allow_infinity: bool = False
) -> dict[str, Any]:
    """Return the JSON object in ``content``; errors call it ``what`` and name ``file``.

    ``allow_infinity``: the number ``Infinity``, which is not JSON, is read as such.

    Raises:
        CheckpointError: it is not UTF-8, not JSON or not an object, or has a repeated key or a non-finite
            number.
    """
    if content.startswith(BYTE_ORDER_MARK):
        raise CheckpointError(
            f"{what} begins with a byte order mark", file=file, hint="save it as UTF-8 without one"
        )
    try:
        parsed = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_read_infinity if allow_infinity else _refuse_constant,
            parse_float=_finite_float,
        )
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{what} is not valid JSON: {error}", file=file, hint=DAMAGED) from error
    if not isinstance(parsed, dict):
        raise CheckpointError(
            f"{what} holds a JSON {type(parsed).__name__}, not an object", file=file, hint=DAMAGED
        )
    return parsed


def converted(values: Any, form: type[T], *, file: str) -> T:
    """Convert JSON values of ``file`` to ``form``.

    Raises:
        CheckpointError: a value is missing or has another type; the message names it.
    """
    try:
        return msgspec.convert(values, prepared(form))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # UnicodeEncodeError: a lone surrogate
        raise CheckpointError(f"does not have the expected form: {error}", file=file, hint=DAMAGED) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {reprlib.repr(counts.most_common(1)[0][0])} occurs twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _read_infinity(name: str) -> float:
    return math.inf if name == "Infinity" else _refuse_constant(name)


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {reprlib.repr(text)} is too large")
    return value
