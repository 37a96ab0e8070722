"""JSON files of a model directory, read with errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llmd.api.errors import ModelError

T = TypeVar("T")

# The largest tokenizer.json in use (256k tokens with merges) has about 35 MB.
MAX_FILE_BYTES = 512 << 20


def read_file(path: Path, *, error: type[ModelError]) -> bytes:
    """The whole file; ``error`` if it cannot be read or is larger than any tokenizer."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise error(
                f"{path} has {size} bytes, more than {MAX_FILE_BYTES}",
                hint="this is not a tokenizer file; copy the right one into the model directory",
            )
        return path.read_bytes()
    except OSError as exc:
        raise error(
            f"{path} cannot be read: {exc.strerror}", hint="check the file and its permissions"
        ) from exc


def parse_json(path: Path, content: bytes, form: type[T], *, error: type[ModelError]) -> T:
    """``content`` of ``path`` as ``form``; ``error`` names the file and the place that does not fit."""
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise error(
            f"{path} does not have the expected form: {exc}",
            hint="the file may be damaged or truncated; copy the model directory again",
        ) from exc


def read_json(path: Path, form: type[T], *, error: type[ModelError]) -> T:
    return parse_json(path, read_file(path, error=error), form, error=error)


def read_json_object(path: Path, *, error: type[ModelError]) -> dict[str, Any]:
    """The file's object, empty where the file does not exist."""
    return read_json(path, dict[str, Any], error=error) if path.exists() else {}
