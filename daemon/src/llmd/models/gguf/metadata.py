"""The metadata of a GGUF file: keys with typed values, decoded on access.

A vocabulary has hundreds of thousands of strings, which most users of a file do not need.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.gguf.header_reader import U64, HeaderReader, decode_text
from llmd.models.json_file import DAMAGED

Value = bool | int | float | str | list[str] | NDArray[Any]
"""An array of strings is a list; an array of numbers or booleans is a read-only NumPy array."""

MAX_KEY_LEN = 65535
BOOL, STRING, ARRAY = 7, 8, 9
NUMBERS: Mapping[int, str] = {
    0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", BOOL: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
"""The NumPy type of each value type of fixed length."""


class Place(msgspec.Struct, frozen=True):
    """Where a value is in the header."""

    type: int
    begin: int
    """Offset of its first byte."""
    count: int | None = None
    """Number of elements; None if it is not a list."""


class Metadata(Mapping[str, Value]):
    """The metadata of a file, by key. Thread-safe; holds the bytes of the header, not the file.

    A float32 is returned as its shortest decimal: 1e-05, not 9.99999975e-06. Access to text that is not UTF-8
    raises `CheckpointError`.
    """

    def __init__(self, content: bytes, places: Mapping[str, Place], *, file: str) -> None:
        self.file = file
        self._content = content
        self._places = places

    def __getitem__(self, key: str) -> Value:
        place = self._places[key]
        if place.type == STRING:
            texts = self._texts(key, place)
            return texts if place.count is not None else texts[0]
        count = 1 if place.count is None else place.count
        dtype = np.dtype(NUMBERS[place.type])
        numbers = np.frombuffer(self._content, dtype, count, place.begin) if count else np.empty(0, dtype)
        if place.count is not None:
            return numbers
        if dtype == np.float32:
            return float(str(numbers[0]))
        value: bool | int | float = numbers[0].item()
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _texts(self, key: str, place: Place) -> list[str]:
        content, length_of, at = self._content, U64.unpack_from, place.begin
        texts = []
        try:
            for _ in range(1 if place.count is None else place.count):
                begin = at + U64.size
                at = begin + length_of(content, at)[0]
                texts.append(content[begin:at].decode())
        except UnicodeDecodeError as error:
            raise CheckpointError(
                f"{key}: the text {reprlib.repr(error.object)} is not UTF-8", file=self.file, hint=DAMAGED
            ) from error
        return texts


def read_metadata(reader: HeaderReader, count: int) -> Metadata:
    """Skip ``count`` keys and their values, and record where each value is.

    Raises:
        CheckpointError: a key or a value is invalid.
    """
    places: dict[str, Place] = {}
    for _ in range(count):
        key = _read_key(reader)
        if key in places:
            raise CheckpointError(f"the key {key} occurs twice", file=reader.name, hint=DAMAGED)
        places[key] = _read_value(reader, key)
    return Metadata(reader.content[: reader.at], places, file=reader.name)


def _read_key(reader: HeaderReader) -> str:
    length = reader.u64()
    if not 0 < length <= MAX_KEY_LEN:
        raise CheckpointError(
            f"states a key of {length} bytes, expected 1..{MAX_KEY_LEN}", file=reader.name, hint=DAMAGED
        )
    begin = reader.take(length)
    key = decode_text(reader.content[begin : reader.at], file=reader.name)
    if not key.isprintable():
        raise CheckpointError(f"{reprlib.repr(key)} cannot be a key", file=reader.name, hint=DAMAGED)
    return key


def _read_value(reader: HeaderReader, key: str) -> Place:
    kind = reader.u32()
    if kind != ARRAY:
        return _skip(reader, key, Place(kind, reader.at))
    kind = reader.u32()
    if kind == ARRAY:
        raise CheckpointError(f"{key} is a list of lists, which no model has", file=reader.name, hint=DAMAGED)
    count = reader.count(least_bytes=1)
    return _skip(reader, key, Place(kind, reader.at, count))


def _skip(reader: HeaderReader, key: str, place: Place) -> Place:
    count = 1 if place.count is None else place.count
    if place.type == STRING:
        reader.skip_strings(count)
    elif place.type in NUMBERS:
        reader.take(count * np.dtype(NUMBERS[place.type]).itemsize)
    else:
        raise CheckpointError(
            f"{key} has a value of the unknown type {place.type}", file=reader.name, hint=DAMAGED
        )
    if place.type == BOOL and max(reader.content[place.begin : reader.at], default=0) > 1:
        raise CheckpointError(f"{key} is neither true nor false", file=reader.name, hint=DAMAGED)
    return place
