"""Make the header of a new GGUF file. `llmd.models.gguf.header` describes the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from llmd.models.gguf.header import DEFAULT_ALIGNMENT, MAGIC
from llmd.models.gguf.header_reader import U32, U64
from llmd.models.gguf.metadata import ARRAY, BOOL, NUMBERS, STRING, Value
from llmd.models.gguf.tensor_types import TENSOR_TYPES
from llmd.models.new_weights import Layout, NewTensor

VERSION = 3
_TYPES_OF_NUMBERS = {np.dtype(name): kind for kind, name in NUMBERS.items()}
_TYPES_OF_TENSORS = {kind.name: number for number, kind in TENSOR_TYPES.items()}


def gguf_layout(metadata: Mapping[str, Value], tensors: Sequence[NewTensor]) -> Layout:
    """Return the layout of a file with these keys and tensors, in this order.

    Integers become uint32 if they fit, otherwise int64; floats become float32.
    """
    offsets, end = [], 0
    for tensor in tensors:
        offsets.append(end)
        end += tensor.num_bytes + -tensor.num_bytes % DEFAULT_ALIGNMENT
    header = b"".join((
        MAGIC, U32.pack(VERSION), U64.pack(len(tensors)), U64.pack(len(metadata)),
        *(_text(key) + _value(value) for key, value in metadata.items()),
        *(_tensor(tensor, offset) for tensor, offset in zip(tensors, offsets, strict=True)),
    ))  # fmt: skip
    header += bytes(-len(header) % DEFAULT_ALIGNMENT)
    return Layout(header, tuple(len(header) + offset for offset in offsets), len(header) + end)


def _tensor(tensor: NewTensor, offset: int) -> bytes:
    shape = b"".join(map(U64.pack, reversed(tensor.shape)))
    kind = U32.pack(_TYPES_OF_TENSORS[tensor.dtype])
    return _text(tensor.name) + U32.pack(len(tensor.shape)) + shape + kind + U64.pack(offset)


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return U32.pack(STRING) + _text(value)
    if isinstance(value, list):
        return U32.pack(ARRAY) + U32.pack(STRING) + U64.pack(len(value)) + b"".join(map(_text, value))
    if isinstance(value, np.ndarray):
        kind = _TYPES_OF_NUMBERS[value.dtype]
        return U32.pack(ARRAY) + U32.pack(kind) + U64.pack(value.size) + value.tobytes()
    number = np.array(value, _dtype(value))
    return U32.pack(_TYPES_OF_NUMBERS[number.dtype]) + number.tobytes()


def _dtype(value: float) -> str:
    of_type = {float: "<f4", bool: NUMBERS[BOOL]}.get(type(value))
    return of_type or ("<u4" if 0 <= value < 1 << 32 else "<i8")


def _text(text: str) -> bytes:
    content = text.encode()
    return U64.pack(len(content)) + content
