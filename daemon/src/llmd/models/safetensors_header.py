"""Read the header of a safetensors file, and check it completely against the file.

Layout: header length n (uint64, little-endian), n bytes of JSON, then tensor data. The JSON maps each
tensor's name to ``dtype``, ``shape`` and ``data_offsets`` (begin, end; counted from the end of the header);
``__metadata__`` maps strings to strings. Tensors cover the data without holes or overlaps.

Source: the format description of github.com/huggingface/safetensors.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import msgspec

from llmd.api.errors import CheckpointError
from llmd.models.json_file import DAMAGED, parse_object

LENGTH_BYTES = 8
GIT_LFS_POINTER = b"version "
MAX_HEADER_BYTES = 100_000_000
MAX_DIMENSIONS = 32
MAX_NAME_LEN = 1000
MAX_TENSOR_BYTES = 2**63 - 1

ITEM_BYTES: Mapping[str, int] = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4,
    "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
"""Bytes per element of each dtype that a header may state."""


class HeaderEntry(msgspec.Struct, frozen=True):
    """One tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Byte offset from the start of the tensor data."""
    end: int
    """Byte offset from the start of the tensor data."""


class Header(msgspec.Struct, frozen=True):
    """A checked header."""

    entries: Mapping[str, HeaderEntry]
    """By name, in the order of the data."""
    metadata: Mapping[str, str]
    data_start: int
    """Offset of the tensor data in the file."""


def header_length(prefix: bytes, file_bytes: int, *, file: str) -> int:
    """Return the length of the JSON, given the first bytes of a file of ``file_bytes``.

    Raises:
        CheckpointError: the file ends before its header does, or the length is not plausible.
    """
    if len(prefix) < LENGTH_BYTES:
        raise CheckpointError(f"truncated: only {file_bytes} bytes long", file=file, hint=DAMAGED)
    if prefix == GIT_LFS_POINTER:
        raise CheckpointError(
            "a Git LFS pointer, not the file itself", file=file, hint="run `git lfs pull` in its repository"
        )
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES:
        raise CheckpointError(
            f"states a header of {length} bytes, more than {MAX_HEADER_BYTES}",
            file=file,
            hint="this is not a safetensors file; copy it again from where the model came from",
        )
    if length > file_bytes - LENGTH_BYTES:
        raise CheckpointError(
            f"truncated: the header should have {length} bytes, the file ends after {file_bytes - LENGTH_BYTES}",
            file=file,
            hint=DAMAGED,
        )
    return length


def parse_header(content: bytes, file_bytes: int, *, file: str) -> Header:
    """Parse and check the JSON of a header against the size of its file.

    Raises:
        CheckpointError: something in it contradicts the format, itself or the file.
    """
    if not content.startswith(b"{"):
        raise CheckpointError("the header does not begin with {", file=file, hint=DAMAGED)
    parsed = parse_object(content, file=file, what="the header")
    metadata = _parse_metadata(parsed.pop("__metadata__", {}), file)
    entries = sorted(
        (_parse_entry(name, fields, file) for name, fields in parsed.items()), key=lambda e: (e.begin, e.end)
    )
    data_start = LENGTH_BYTES + len(content)
    _check_coverage(entries, file_bytes - data_start, file)
    return Header({entry.name: entry for entry in entries}, metadata, data_start)


def _parse_metadata(fields: Any, file: str) -> Mapping[str, str]:
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise CheckpointError(
            "__metadata__ of the header does not map strings to strings", file=file, hint=DAMAGED
        )
    return fields


def _parse_entry(name: str, fields: Any, file: str) -> HeaderEntry:
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LEN:
        raise CheckpointError(f"{reprlib.repr(name)} cannot be the name of a tensor", file=file, hint=DAMAGED)
    if not isinstance(fields, dict) or fields.keys() != {"dtype", "shape", "data_offsets"}:
        raise _entry_error("the header must give dtype, shape and data_offsets, and no more", name, file)
    dtype = fields["dtype"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise _entry_error(
            f"unknown dtype {reprlib.repr(dtype)}; known are {', '.join(ITEM_BYTES)}", name, file
        )
    shape = _counts(fields["shape"], "shape", name, file)
    offsets = _counts(fields["data_offsets"], "data_offsets", name, file)
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _entry_error(f"data_offsets {reprlib.repr(offsets)} are not a begin and an end", name, file)
    _check_size(shape, dtype, offsets[1] - offsets[0], name, file)
    return HeaderEntry(name, dtype, shape, *offsets)


def _counts(value: Any, field: str, name: str, file: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(count) is int and count >= 0 for count in value):
        raise _entry_error(f"{field} {reprlib.repr(value)} is not a list of counts", name, file)
    return tuple(value)


def _check_size(shape: tuple[int, ...], dtype: str, num_bytes: int, name: str, file: str) -> None:
    """Check the shape against the stored size. Zero dimensions must not hide an absurd shape."""
    item_bytes = ITEM_BYTES[dtype]
    largest = MAX_TENSOR_BYTES // item_bytes
    if len(shape) > MAX_DIMENSIONS or math.prod(max(dimension, 1) for dimension in shape) > largest:
        raise _entry_error(f"no tensor can have the shape {reprlib.repr(list(shape))}", name, file)
    needed = math.prod(shape) * item_bytes
    if needed != num_bytes:
        raise _entry_error(
            f"shape {list(shape)} of {dtype} needs {needed} bytes, data_offsets give {num_bytes}", name, file
        )


def _check_coverage(entries: list[HeaderEntry], data_bytes: int, file: str) -> None:
    covered = 0
    for entry in entries:
        if entry.begin != covered:
            kind = "overlaps the tensor before it" if entry.begin < covered else "leaves a hole before it"
            raise _entry_error(f"begins at {entry.begin}, expected {covered}: {kind}", entry.name, file)
        covered = entry.end
        if covered > data_bytes:
            raise _entry_error(
                f"truncated: ends at byte {covered}, the file holds {data_bytes} bytes of data",
                entry.name,
                file,
            )
    if covered < data_bytes:
        raise CheckpointError(f"{data_bytes - covered} bytes follow the last tensor", file=file, hint=DAMAGED)


def _entry_error(message: str, name: str, file: str) -> CheckpointError:
    return CheckpointError(message, file=file, tensor=name, hint=DAMAGED)
