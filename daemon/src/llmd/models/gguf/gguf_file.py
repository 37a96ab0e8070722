"""A GGUF file, mapped into memory; its tensors are returned without a copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from llmd.models.gguf.header import GgufTensor, Header
from llmd.models.gguf.last_header import last_header
from llmd.models.gguf.metadata import Metadata
from llmd.models.mapped_file import MappedFile, Mapper, map_file, opening

NUMPY_DTYPES: Mapping[str, str] = {
    "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
}  # fmt: skip
"""For types without blocks. NumPy has no bf16: its bits as unsigned integers."""


class GgufFile:
    """One file with a checked header; its data has not been read.

    Thread-safe. Arrays returned by `view` keep the map alive after `close`; the metadata stays valid too.
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
            header = last_header.read(file, path)
            return cls(MappedFile(path, file, mapper=mapper), header)

    @property
    def metadata(self) -> Metadata:
        return self.header.metadata

    @property
    def tensors(self) -> Mapping[str, GgufTensor]:
        return self.header.entries

    def view(self, name: str) -> NDArray[np.generic]:
        """Return a tensor, read-only and mapped: its elements (bf16 as bits), or the bytes of its blocks.

        Blocks are uint8 ``[..., blocks of a row * bytes of a block]``.

        Raises:
            CheckpointError: the file has shrunk since it was opened: reading past its end would crash the
                process.
        """
        tensor = self.tensors[name]
        dtype = np.dtype(NUMPY_DTYPES.get(tensor.type.name, "u1"))
        return self._mapped.array(dtype, tensor.stored_shape, tensor.begin, tensor=name)

    def fetch(self, name: str) -> None:
        """See `MappedFile.fetch`."""
        tensor = self.tensors[name]
        self._mapped.fetch(tensor.begin, tensor.end - tensor.begin)

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None:
        """Do what `MappedFile.advise` does with the bytes ``[first, last)`` of a tensor."""
        self._mapped.advise(self.tensors[name].begin + first, last - first, needed=needed)

    def release(self) -> None:
        """See `MappedFile.release`."""
        self._mapped.release()

    def close(self) -> None:
        self._mapped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def read_gguf_metadata(path: Path) -> Metadata:
    """Read the metadata of a file.

    Raises:
        CheckpointError: see `GgufFile.open`.
    """
    with opening(path) as file, file:
        return last_header.read(file, path).metadata
