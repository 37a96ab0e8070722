"""Messages with NumPy arrays as frames: structs of msgspec as msgpack, and the arrays as they are in memory.

A frame is the prefix `_PREFIX`, the msgpack, padding, and the arrays, each of which begins at a multiple of
`ALIGNMENT` bytes after the padding. In the msgpack, an array is ``[dtype, shape, place]``; the place is
counted from the first array. Byte order is that of the machine: the dtype names it.

Fields that a struct gets later need no change here. The types of both sides must be equal: `VERSION` rises
with every change of the form, and both sides belong to one installation.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.decoding import prepared
from llmd.process.frames import FrameError

MAGIC = b"llmA"
VERSION = 1
ALIGNMENT = 64

_PREFIX = struct.Struct("<4sII")
"""Magic, version, bytes of the msgpack."""

T = TypeVar("T")


class ArrayFrame:
    """A message that is ready to be written to a buffer. Its arrays must not change before that."""

    def __init__(self, message: object) -> None:
        self._arrays: list[tuple[int, NDArray[np.generic]]] = []
        self._end = 0
        self._packed = msgspec.msgpack.Encoder(enc_hook=self._placed).encode(message)
        self._first = _aligned(_PREFIX.size + len(self._packed))

    @property
    def num_bytes(self) -> int:
        """Bytes of the frame."""
        return self._first + self._end

    def write_to(self, buffer: memoryview) -> None:
        """Write the frame to a buffer of `num_bytes`, the only copy of the arrays."""
        _PREFIX.pack_into(buffer, 0, MAGIC, VERSION, len(self._packed))
        buffer[_PREFIX.size : _PREFIX.size + len(self._packed)] = self._packed
        for place, array in self._arrays:
            target = np.frombuffer(buffer, array.dtype, array.size, self._first + place)
            target.reshape(array.shape)[...] = array

    def _placed(self, value: object) -> tuple[str, tuple[int, ...], int]:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"a message holds a {type(value).__name__}, which no frame can carry")
        place = _aligned(self._end)
        self._arrays.append((place, value))
        self._end = place + value.nbytes
        return value.dtype.str, value.shape, place


class ArrayFrameReader(Generic[T]):
    """Reads messages of one type. Used by one thread at a time."""

    def __init__(self, form: type[T]) -> None:
        """``form`` is a struct, a union of structs, or any other type that msgspec decodes."""
        self._decoder = msgspec.msgpack.Decoder(prepared(form), dec_hook=self._array)
        self._arrays = memoryview(b"")

    def read(self, data: memoryview) -> T:
        """Return the message of a frame, with copies of its arrays.

        Raises:
            FrameError: it is no such message.
        """
        packed, self._arrays = _split(data)
        try:
            return self._decoder.decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FrameError(f"a frame holds an unexpected message: {error}") from error
        finally:
            self._arrays = memoryview(b"")

    def _array(self, form: Any, value: Any) -> NDArray[np.generic]:
        """Return a copy of an array, given its type and its ``[dtype, shape, place]``."""
        if get_origin(form) is not np.ndarray:
            raise TypeError(f"{form} is no array")
        (wanted,) = get_args(get_args(form)[1])
        name, shape, place = msgspec.convert(value, prepared(tuple[str, tuple[int, ...], int]))
        dtype = np.dtype(wanted)
        if dtype.str != name:
            raise ValueError(f"an array of {name} in place of {dtype.str}")
        if min((place, *shape)) < 0 or place + math.prod(shape) * dtype.itemsize > len(self._arrays):
            raise ValueError(f"an array {shape} of {name} at byte {place} exceeds the frame")
        return np.frombuffer(self._arrays, dtype, math.prod(shape), place).reshape(shape).copy()


def _split(data: memoryview) -> tuple[memoryview, memoryview]:
    """Return the msgpack and the arrays of a frame."""
    if len(data) < _PREFIX.size:
        raise FrameError(f"a frame has {len(data)} bytes, fewer than its prefix")
    magic, version, length = _PREFIX.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise FrameError("a frame has another form or version; both sides must run the same llmd")
    if _PREFIX.size + length > len(data):
        raise FrameError(f"a frame of {len(data)} bytes is cut off")
    end = _PREFIX.size + length
    return data[_PREFIX.size : end], data[_aligned(end) :]


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT
