"""Write a file of weights: its tensors, their offsets, and their data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import PLAIN_FORMATS, Format
from llmd.models.formats.gguf_blocks import block_bytes
from llmd.models.plain_formats import STORED_DTYPES

Read = Callable[[str], Iterable[NDArray[np.generic]]]
"""Returns the content of a tensor by name, in one array or several: elements, or bytes of blocks."""

BYTES: Format = "u8"
"""Of tensors that hold only codes or only scales."""

INTEGERS: Mapping[Format, str] = {"i32": "<i4", "i64": "<i8"}
"""The NumPy types of integers, which only tables have (`TensorRef.integers_below`)."""


class NewTensor(msgspec.Struct, frozen=True):
    """A tensor to be written."""

    name: str
    format: Format
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """Name of the format in headers."""
        return self.format.upper()

    @property
    def num_bytes(self) -> int:
        if self.format == BYTES:
            return math.prod(self.shape)
        if self.format in INTEGERS:
            return math.prod(self.shape) * np.dtype(INTEGERS[self.format]).itemsize
        if self.format in PLAIN_FORMATS:
            return math.prod(self.shape) * STORED_DTYPES[self.format].itemsize
        return math.prod(self.shape[:-1]) * block_bytes(self.format, self.shape[-1])


class Layout(msgspec.Struct, frozen=True):
    """The layout of a file."""

    header: bytes
    """Everything before the tensor data."""
    begins: tuple[int, ...]
    """Offset of each tensor in the file, in the order of the data."""
    num_bytes: int
    """Size of the whole file."""


def write_header(path: Path, layout: Layout) -> None:
    """Create the file with its header and full length. It is a valid file at once; all tensors are zero."""
    with path.open("xb") as file:
        file.write(layout.header)
        file.truncate(layout.num_bytes)


def write_tensors(
    file: BinaryIO, layout: Layout, tensors: Sequence[NewTensor], read: Read
) -> Iterator[NewTensor]:
    """Write the tensors one at a time; yield each after it was written."""
    for tensor, begin in zip(tensors, layout.begins, strict=True):
        file.seek(begin)
        written = sum(_write(file, content) for content in read(tensor.name))
        assert written == tensor.num_bytes, tensor.name
        yield tensor


def _write(file: BinaryIO, content: NDArray[np.generic]) -> int:
    return file.write(np.ascontiguousarray(content).reshape(-1).view(np.uint8).data)
