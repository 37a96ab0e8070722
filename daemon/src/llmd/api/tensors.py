"""Names of checkpoint tensors, and the weights that a device receives."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS

Format = str
"""How a weight is stored: ``f32``, ``f16``, ``bf16`` or one of `INTEGER_FORMATS`, such as ``q8``."""

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


class GroupScales(msgspec.Struct, frozen=True):
    """A scale, or a minimum, for each group of each row.

    One level: ``coarse`` is ``[out, groups]`` and ``fine`` None. Two levels: ``coarse`` is ``[out, coarse groups]``, ``fine``
    int8 or uint8 ``[out, groups]``, and a scale is their product. ``coarse`` is float16, or float32 where powers of
    two are scales (``mxfp4``).
    """

    coarse: NDArray[np.floating]
    fine: NDArray[np.integer] | None = None

    def values(self) -> NDArray[np.float32]:
        """The scales ``[out, groups]``, exactly."""
        coarse = self.coarse.astype(np.float32)
        if self.fine is None:
            return coarse
        num_groups = self.fine.shape[1]
        per_coarse = -(-num_groups // max(coarse.shape[1], 1))
        values: NDArray[np.float32] = np.repeat(coarse, per_coarse, axis=1)[:, :num_groups] * self.fine
        return values

    def rows(self, rows: slice) -> GroupScales:
        """Those of some rows, without a copy."""
        return GroupScales(self.coarse[rows], None if self.fine is None else self.fine[rows])

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays that are there."""
        return (self.coarse,) if self.fine is None else (self.coarse, self.fine)


class WeightData(msgspec.Struct, frozen=True):
    """The contents of a weight, read-only, valid until the `TensorSource` is closed.

    Plain formats: ``data`` is ``[...]`` float32, float16, or uint16 holding bf16 bits; C-contiguous, usually
    mapped from the file without a copy and possibly unaligned to more than the element size.

    Integer formats: ``data`` is uint8 codes ``[out, in]``, one in a byte however few bits it has, and ``group_size`` inputs
    share a scale (the last group of a row may be short). Weight ``[o, i]`` of group ``g`` is
    ``scale[o, g] * integer[o, i] + minimum[o, g]`` in float32, where the product is exact and the sum rounded once.
    """

    format: Format
    data: NDArray[np.generic]
    scales: GroupScales | None = None
    minimums: GroupScales | None = None
    group_size: int = 0

    def integers(self) -> NDArray[np.int8]:
        """What the codes of an integer format stand for, int8 ``[out, in]``."""
        form = INTEGER_FORMATS[self.format]
        if form.book:
            return np.array(form.book, np.int8)[self.data.view(np.uint8)]
        return (self.data.view(np.uint8) - np.uint8(form.zero)).view(np.int8)

    def rows(self, rows: slice) -> WeightData:
        """Some rows of it, without a copy."""
        scales, minimums = (
            None if group is None else group.rows(rows) for group in (self.scales, self.minimums)
        )
        return WeightData(self.format, self.data[rows], scales, minimums, self.group_size)

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """All arrays that are there: the codes or elements, then scales, then minimums."""
        groups = (scales.arrays for scales in (self.scales, self.minimums) if scales is not None)
        return (self.data, *itertools.chain.from_iterable(groups))


class TensorSource(Protocol):
    """Where a device reads weights from while it loads. Thread-safe."""

    @property
    def packed(self) -> Path | None:
        """A file for this device and the weights of its program alone, which may not be there yet.

        What a device writes there, in whatever layout, it finds again when it loads the same weights, or it finds
        nothing; what it cannot use it replaces. None: nothing is kept.
        """
        ...

    def read(self, weight: Weight) -> WeightData:
        """Return the weight in ``weight.format``, quantising on the way where the checkpoint is plain.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...
