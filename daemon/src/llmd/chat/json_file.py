"""Read JSON files of a model directory; errors name the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import CheckpointError, ModelError
from llmd.models.files import is_named, read_bytes

T = TypeVar("T")

# The largest tokenizer.json in use (256k tokens with merges) is about 35 MB.
MAX_FILE_BYTES = 512 << 20


def read_file(path: Path, *, error: type[ModelError]) -> bytes:
    """Return the whole file; raise ``error`` if it cannot be read or is larger than `MAX_FILE_BYTES`."""
    try:
        return read_bytes(path, max_bytes=MAX_FILE_BYTES)
    except CheckpointError as exc:
        raise error(exc.message, hint=exc.hint) from exc


def parse_json(path: Path, content: bytes, form: type[T], *, error: type[ModelError]) -> T:
    """Decode ``content`` of ``path`` as ``form``; ``error`` names the file and what does not fit."""
    try:
        return msgspec.json.decode(content, type=prepared(form))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise _misshapen(path, exc, error) from exc


def convert_json(path: Path, values: Mapping[str, Any], form: type[T], *, error: type[ModelError]) -> T:
    """Convert the object ``values`` of the file ``path`` to ``form``; raise as `parse_json` does."""
    try:
        return msgspec.convert(values, prepared(form), str_keys=True)
    except (msgspec.ValidationError, UnicodeEncodeError) as exc:
        raise _misshapen(path, exc, error) from exc


def _misshapen(path: Path, reason: Exception, error: type[ModelError]) -> ModelError:
    return error(
        f"{path} does not have the expected form: {reason}",
        hint="the file may be damaged or truncated; copy the model directory again",
    )


def read_json(path: Path, form: type[T], *, error: type[ModelError]) -> T:
    return parse_json(path, read_file(path, error=error), form, error=error)


def read_json_object(path: Path, *, error: type[ModelError]) -> dict[str, Any]:
    """Return the file's object; empty if the file does not exist."""
    return read_json(path, dict[str, Any], error=error) if is_named(path) else {}
