"""A file of weights that is about to be written: which tensors it gets, and where each lies in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import PLAIN_FORMATS, Format
from llmd.models.formats.gguf_blocks import block_bytes
from llmd.models.plain_formats import STORED_DTYPES

Read = Callable[[str], NDArray[np.generic]]
"""The content of a tensor by its name: its elements, or the bytes of its blocks."""


class NewTensor(msgspec.Struct, frozen=True):
    """A tensor to be: headers call its type as the format, in capitals."""

    name: str
    format: Format
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return self.format.upper()

    @property
    def num_bytes(self) -> int:
        if self.format in PLAIN_FORMATS:
            return math.prod(self.shape) * STORED_DTYPES[self.format].itemsize
        return math.prod(self.shape[:-1]) * block_bytes(self.format, self.shape[-1])


class Layout(msgspec.Struct, frozen=True):
    """The bytes before the data, and the first byte of each tensor in the file, in the order of their data."""

    header: bytes
    begins: tuple[int, ...]
    num_bytes: int


def write_header(path: Path, layout: Layout) -> None:
    """Make the file as long as it will be, with its header: whoever opens it finds every tensor, filled with zeros."""
    with path.open("xb") as file:
        file.write(layout.header)
        file.truncate(layout.num_bytes)


def write_tensors(
    file: BinaryIO, layout: Layout, tensors: Sequence[NewTensor], read: Read
) -> Iterator[NewTensor]:
    """Fill the file, a tensor at a time; yields each when it has been written."""
    for tensor, begin in zip(tensors, layout.begins, strict=True):
        content = np.ascontiguousarray(read(tensor.name))
        assert content.nbytes == tensor.num_bytes, tensor.name
        file.seek(begin)
        file.write(content.reshape(-1).view(np.uint8).data)
        yield tensor
