"""A safetensors file, mapped into memory; its tensors are returned without a copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from llmd.models.files import file_size
from llmd.models.mapped_file import MappedFile, Mapper, map_file, opening
from llmd.models.safetensors_header import LENGTH_BYTES, Header, header_length, parse_header

NUMPY_DTYPES: Mapping[str, str] = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
    # NumPy lacks these: their bits as unsigned integers.
    "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1",
}  # fmt: skip


class SafetensorsFile:
    """One file with a checked header; its data has not been read.

    Thread-safe. Arrays returned by `view` keep the map alive after `close`.
    """

    def __init__(self, mapped: MappedFile, header: Header) -> None:
        self.path = mapped.path
        self.header = header
        self._mapped = mapped

    @classmethod
    def open(cls, path: Path, *, mapper: Mapper = map_file) -> Self:
        """Read and check the header.

        Raises:
            CheckpointError: the file cannot be read or mapped, or its header contradicts the format, itself
                or the file.
        """
        with opening(path) as file:
            header = read_header(file, path)
            return cls(MappedFile(path, file, mapper=mapper), header)

    def view(self, name: str) -> NDArray[np.generic]:
        """Return a tensor, read-only and mapped; bf16 and 8-bit floats as unsigned integers with their bits.

        Raises:
            CheckpointError: the file has shrunk since it was opened: reading past its end would crash the
                process.
        """
        entry = self.header.entries[name]
        dtype = np.dtype(NUMPY_DTYPES[entry.dtype])
        return self._mapped.array(dtype, entry.shape, self.header.data_start + entry.begin, tensor=name)

    def fetch(self, name: str) -> None:
        """See `MappedFile.fetch`."""
        entry = self.header.entries[name]
        self._mapped.fetch(self.header.data_start + entry.begin, entry.end - entry.begin)

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None:
        """Do what `MappedFile.advise` does with the bytes ``[first, last)`` of a tensor."""
        entry = self.header.entries[name]
        self._mapped.advise(self.header.data_start + entry.begin + first, last - first, needed=needed)

    def release(self) -> None:
        """See `MappedFile.release`."""
        self._mapped.release()

    def close(self) -> None:
        self._mapped.close()

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
