"""Names of checkpoint tensors, and the weights that a device receives."""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Format = str
"""How a weight is stored: ``f32``, ``f16``, ``bf16`` or the name of a quantised format such as ``q8``."""

PLAIN_FORMATS: tuple[Format, ...] = ("f32", "f16", "bf16")


class TensorRef(msgspec.Struct, frozen=True):
    """A tensor of the checkpoint, or a half-open range of its first axis.

    ``shape`` is the shape of the whole tensor in the checkpoint; ``rows`` cuts fused tensors
    (one ``qkv_proj`` read as three weights) without a copy.
    """

    name: str
    shape: tuple[int, ...]
    rows: tuple[int, int] | None = None

    @property
    def view_shape(self) -> tuple[int, ...]:
        """Shape after the row range is taken."""
        if self.rows is None:
            return self.shape
        first, last = self.rows
        return (last - first, *self.shape[1:])


class Weight(msgspec.Struct, frozen=True):
    """One weight as a program uses it: which tensor, in which format."""

    ref: TensorRef
    format: Format


class WeightData(msgspec.Struct, frozen=True):
    """The contents of a weight, read-only, valid until the `TensorSource` is closed.

    Plain formats: ``data`` is ``[...]`` float32, float16, or uint16 holding bf16 bits; C-contiguous, usually
    mapped from the file without a copy and possibly unaligned to more than the element size.
    ``q8``: ``data`` is int8 ``[out, in]`` in -127..127, ``scales`` float16 ``[out, ceil(in / group_size)]``;
    weight ``[o, i]`` is ``data[o, i] * scales[o, i // group_size]``.
    """

    format: Format
    data: NDArray[np.generic]
    scales: NDArray[np.float16] | None = None
    group_size: int = 0


class TensorSource(Protocol):
    """Where a device reads weights from while it loads. Thread-safe."""

    def read(self, weight: Weight) -> WeightData:
        """Return the weight in ``weight.format``, quantising on the way where the checkpoint is plain.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...
