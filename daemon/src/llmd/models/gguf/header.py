"""Read the header of a GGUF file, and check it completely against the file.

Layout, little-endian: ``GGUF``, version (uint32), number of tensors and of keys (uint64 each); the keys with
their values; for each tensor its name, number of dimensions (uint32), dimensions (uint64 each, the innermost
first), type (uint32) and offset (uint64, from the start of the data). The data starts at the next multiple of
the alignment, and so does each tensor.

Source: docs/gguf.md of github.com/ggml-org/ggml.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from llmd.api.errors import CheckpointError
from llmd.models.gguf.fields import MetadataFields
from llmd.models.gguf.header_reader import HeaderReader
from llmd.models.gguf.metadata import Metadata, read_metadata
from llmd.models.gguf.tensor_types import TENSOR_TYPES, TensorType
from llmd.models.json_file import DAMAGED

MAGIC = b"GGUF"
OLDER_MAGICS = (b"lmgg", b"fmgg", b"tjgg", b"algg")
GIT_LFS_POINTER = b"version "
VERSIONS = (2, 3)
LEAST_KEY_BYTES = 13
LEAST_TENSOR_BYTES = 33
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 20
MAX_DIMENSIONS = 4
MAX_NAME_LEN = 1000
MAX_ELEMENTS = 2**63 - 1
ALIGNMENT = "general.alignment"


class GgufTensor(msgspec.Struct, frozen=True):
    """One tensor."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    """The outermost dimension first, as in NumPy."""
    begin: int
    """Byte offset in the file."""
    end: int
    """Byte offset in the file."""

    @property
    def dtype(self) -> str:
        return self.type.name

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the stored array: in bytes if the type has blocks."""
        if self.type.block_len == 1:
            return self.shape
        return (*self.shape[:-1], self.shape[-1] // self.type.block_len * self.type.block_bytes)


class Header(msgspec.Struct, frozen=True):
    """A checked header."""

    version: int
    metadata: Metadata
    entries: Mapping[str, GgufTensor]
    """By name, in the order of the data."""


def read_header(file: BinaryIO, path: Path) -> Header:
    """Read and check the header of a file that is open at its start.

    Raises:
        CheckpointError: it is not a GGUF file, has an unsupported version, or its header contradicts the
            format, itself or the file.
    """
    reader = HeaderReader(file, name=str(path))
    version = _read_version(reader)
    num_tensors = reader.count(least_bytes=LEAST_TENSOR_BYTES)
    num_keys = reader.count(least_bytes=LEAST_KEY_BYTES)
    metadata = read_metadata(reader, num_keys)
    alignment = _alignment(metadata)
    stated = [_read_tensor(reader) for _ in range(num_tensors)]
    tensors = _place_all(stated, _aligned(reader.at, alignment), alignment, reader)
    return Header(version, metadata, tensors)


def _read_version(reader: HeaderReader) -> int:
    begin = reader.take(min(8, reader.file_bytes))
    start = reader.content[begin : reader.at]
    if start == GIT_LFS_POINTER:
        raise CheckpointError(
            "a Git LFS pointer, not the file itself",
            file=reader.name,
            hint="run `git lfs pull` in its repository",
        )
    if start[:4] in OLDER_MAGICS:
        raise CheckpointError(
            "a file in one of GGML's formats before GGUF, which llmd does not read",
            file=reader.name,
            hint="use a GGUF file of the model, or convert it with llama.cpp",
        )
    if start[:4] != MAGIC or len(start) < 8:
        raise CheckpointError(
            f"does not begin with {MAGIC.decode()} and a version", file=reader.name, hint=DAMAGED
        )
    version = int.from_bytes(start[4:], "little")
    if version not in VERSIONS:
        raise _wrong_version(version, reader)
    return version


def _wrong_version(version: int, reader: HeaderReader) -> CheckpointError:
    if version & 0xFFFF == 0:
        return CheckpointError(
            "a big-endian GGUF file, which llmd does not read",
            file=reader.name,
            hint="use the little-endian file, which every common machine uses",
        )
    older = version < VERSIONS[0]
    return CheckpointError(
        f"GGUF version {version}; supported are {', '.join(map(str, VERSIONS))}",
        file=reader.name,
        hint="convert it again with a current llama.cpp" if older else "try a newer llmd",
    )


def _alignment(metadata: Metadata) -> int:
    fields = MetadataFields(metadata)
    alignment: int = fields.integer(ALIGNMENT, DEFAULT_ALIGNMENT)
    if not 0 < alignment <= MAX_ALIGNMENT or alignment.bit_count() != 1:
        raise fields.contradict(f"is {alignment}, expected a power of 2 up to {MAX_ALIGNMENT}", ALIGNMENT)
    return alignment


class _Stated(msgspec.Struct, frozen=True):
    """A tensor as the header states it."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    offset: int
    """In bytes from the start of the tensor data."""

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) // self.type.block_len * self.type.block_bytes


def _read_tensor(reader: HeaderReader) -> _Stated:
    name = reader.string()
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LEN:
        raise CheckpointError(
            f"{reprlib.repr(name)} cannot be the name of a tensor", file=reader.name, hint=DAMAGED
        )
    num_dimensions = reader.u32()
    if num_dimensions > MAX_DIMENSIONS:
        raise _tensor_error(
            f"states {num_dimensions} dimensions; at most {MAX_DIMENSIONS} are allowed", name, reader
        )
    shape = tuple(reversed([reader.u64() for _ in range(num_dimensions)]))
    kind = reader.u32()
    if kind not in TENSOR_TYPES:
        raise CheckpointError(
            f"has the unknown type {kind}",
            file=reader.name,
            tensor=name,
            hint="try a newer llmd, or use the model in another quantisation, such as Q4_K_M",
        )
    stated = _Stated(name, TENSOR_TYPES[kind], shape, reader.u64())
    _check_shape(stated, reader)
    return stated


def _check_shape(stated: _Stated, reader: HeaderReader) -> None:
    """Check the shape against the type's blocks. Zero dimensions must not hide an absurd shape."""
    if math.prod(max(dimension, 1) for dimension in stated.shape) > MAX_ELEMENTS:
        raise _tensor_error(f"no tensor can have the shape {list(stated.shape)}", stated.name, reader)
    row_len = stated.shape[-1] if stated.shape else 1
    if row_len % stated.type.block_len:
        raise _tensor_error(
            f"has rows of {row_len} elements, but {stated.type.name} has blocks of {stated.type.block_len}",
            stated.name,
            reader,
        )


def _place_all(
    stated: list[_Stated], data_start: int, alignment: int, reader: HeaderReader
) -> Mapping[str, GgufTensor]:
    """Place the tensors in the file. Only the padding for alignment may separate their data."""
    placed: dict[str, GgufTensor] = {}
    end = data_start
    for tensor in sorted(stated, key=lambda tensor: (tensor.offset, tensor.num_bytes)):
        if tensor.name in placed:
            raise _tensor_error("occurs twice in the header", tensor.name, reader)
        begin, expected = data_start + tensor.offset, _aligned(end, alignment)
        if begin != expected:
            kind = "overlaps the tensor before it" if begin < expected else "leaves a hole before it"
            raise _tensor_error(f"begins at byte {begin}, expected {expected}: {kind}", tensor.name, reader)
        end = begin + tensor.num_bytes
        if end > reader.file_bytes:
            raise _tensor_error(
                f"truncated: ends at byte {end}, the file ends after {reader.file_bytes}", tensor.name, reader
            )
        placed[tensor.name] = GgufTensor(tensor.name, tensor.type, tensor.shape, begin, end)
    if reader.file_bytes > _aligned(end, alignment):
        raise CheckpointError(
            f"{reader.file_bytes - end} bytes follow the last tensor", file=reader.name, hint=DAMAGED
        )
    return placed


def _aligned(at: int, alignment: int) -> int:
    return at + -at % alignment


def _tensor_error(message: str, name: str, reader: HeaderReader) -> CheckpointError:
    return CheckpointError(message, file=reader.name, tensor=name, hint=DAMAGED)
