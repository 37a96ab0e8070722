"""A safetensors file, mapped into memory; its tensors are handed out without a copy."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.files import file_size, open_file
from llmd.models.safetensors_header import LENGTH_BYTES, Header, HeaderEntry, header_length, parse_header

Mapper = Callable[[BinaryIO], mmap.mmap]
"""Maps a whole file, read-only. Tests pass one whose map cannot be read."""

NUMPY_DTYPES: Mapping[str, str] = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
    # NumPy has none of these: their bits.
    "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1",
}  # fmt: skip


def map_file(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class SafetensorsFile:
    """One file whose header has been checked; its data has not been read.

    Thread-safe. Arrays that `view` returned keep the map alive after `close`.
    """

    def __init__(self, path: Path, file: BinaryIO, header: Header, *, mapper: Mapper) -> None:
        self.path = path
        self.header = header
        self.size_bytes = file_size(file)
        self._file = file
        self._map = mapper(file)

    @classmethod
    def open(cls, path: Path, *, mapper: Mapper = map_file) -> Self:
        """Read and check the header.

        Raises:
            CheckpointError: the file cannot be read or mapped, or its header contradicts the format, itself or the file.
        """
        file = open_file(path)
        try:
            return cls(path, file, read_header(file, path), mapper=mapper)
        except OSError as error:
            file.close()
            raise CheckpointError(
                f"cannot be mapped: {error.strerror}", file=str(path), hint="check the disk, and free memory"
            ) from error
        except BaseException:
            file.close()
            raise

    def view(self, name: str) -> NDArray[np.generic]:
        """The tensor, read-only and mapped; bf16 and 8-bit floats as unsigned integers holding their bits.

        Raises:
            CheckpointError: the file has shrunk since it was opened, so that touching its end would be fatal.
        """
        entry = self.header.entries[name]
        self._check_unshrunk(entry)
        dtype = np.dtype(NUMPY_DTYPES[entry.dtype])
        offset = self.header.data_start + entry.begin
        if entry.begin == entry.end:
            return np.empty(entry.shape, dtype)
        flat = np.frombuffer(self._map, dtype, count=math.prod(entry.shape), offset=offset)
        return flat.reshape(entry.shape)

    def _check_unshrunk(self, entry: HeaderEntry) -> None:
        size_bytes = file_size(self._file)
        if size_bytes < self.size_bytes:
            raise CheckpointError(
                f"the file shrank from {self.size_bytes} to {size_bytes} bytes while it was in use",
                file=str(self.path),
                tensor=entry.name,
                hint="write a new version beside the old file and rename it; load the model again",
            )

    def close(self) -> None:
        self._file.close()
        with contextlib.suppress(BufferError):  # arrays still refer to the map; the last one ends it
            self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def read_header(file: BinaryIO, path: Path) -> Header:
    """Read and check the header of an open file.

    Raises:
        CheckpointError: the header contradicts the format, itself or the file.
    """
    size_bytes = file_size(file)
    length = header_length(file.read(LENGTH_BYTES), size_bytes, file=str(path))
    return parse_header(file.read(length), size_bytes, file=str(path))
