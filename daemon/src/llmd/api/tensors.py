"""Names of checkpoint tensors, and the weights that a device receives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS, OUTLIER_STEP

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


class Outliers(msgspec.Struct, frozen=True):
    """What the codes of groups do not reach.

    ``columns`` is uint8 ``[out, groups, outliers]``: inputs of the group. ``residuals`` is int8 of the same shape: what is added
    to the integers there, times `OUTLIER_STEP`. Those of the same input add up; where there is no outlier both are 0.
    """

    columns: NDArray[np.uint8]
    residuals: NDArray[np.int8]

    def add_to(self, integers: NDArray[np.int16], group_size: int) -> None:
        """Add the residuals to integers ``[out, in]``."""
        num_rows, num_groups, count = self.columns.shape
        first = np.arange(num_groups, dtype=np.int64)[:, None] * group_size
        places = (first + self.columns).reshape(num_rows, num_groups * count)
        residuals = self.residuals.astype(np.int16).reshape(places.shape)
        np.add.at(integers, (np.arange(num_rows)[:, None], places), OUTLIER_STEP * residuals)

    def rows(self, rows: slice) -> Outliers:
        """Those of some rows, without a copy."""
        return Outliers(self.columns[rows], self.residuals[rows])

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays that are there."""
        return (self.columns, self.residuals)


class WeightData(msgspec.Struct, frozen=True):
    """The contents of a weight, read-only, valid until the `TensorSource` is closed. All arrays are C-contiguous.

    Plain formats: ``data`` is ``[...]`` float32, float16, or uint16 holding bf16 bits; usually mapped from the file
    without a copy and possibly unaligned to more than the element size.

    Integer formats: ``data`` is uint8 codes ``[out, in]``, one in a byte however few bits it has, and ``group_size`` inputs
    share a scale (the last group of a row may be short). Weight ``[o, i]`` of group ``g`` is
    ``scale[o, g] * integer[o, i] + minimum[o, g]`` in float32, where the product is exact and the sum rounded once.
    ``outliers`` are there where the format has some.
    """

    format: Format
    data: NDArray[np.generic]
    scales: GroupScales | None = None
    minimums: GroupScales | None = None
    group_size: int = 0
    outliers: Outliers | None = None

    def integers(self) -> NDArray[np.int8] | NDArray[np.int16]:
        """What the codes of an integer format stand for ``[out, in]``, int16 where there are outliers, else int8."""
        form = INTEGER_FORMATS[self.format]
        if form.book:
            return np.array(form.book, np.int8)[self.data.view(np.uint8)]
        integers = (self.data.view(np.uint8) - np.uint8(form.zero)).view(np.int8)
        if self.outliers is None:
            return integers
        wide = integers.astype(np.int16)
        self.outliers.add_to(wide, self.group_size)
        return wide

    def rows(self, rows: slice) -> WeightData:
        """Some rows of it, without a copy."""
        scales, minimums = (
            None if group is None else group.rows(rows) for group in (self.scales, self.minimums)
        )
        outliers = None if self.outliers is None else self.outliers.rows(rows)
        return WeightData(self.format, self.data[rows], scales, minimums, self.group_size, outliers)

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """All arrays that are there: the codes or elements, then scales, then minimums, then outliers."""
        parts = (part.arrays for part in (self.scales, self.minimums, self.outliers) if part is not None)
        return (self.data, *itertools.chain.from_iterable(parts))


class TensorSource(Protocol):
    """Where a device reads weights from while it loads. Thread-safe."""

    @property
    def packed(self) -> Path | None:
        """A file for this device and the weights of its program alone, which may not be there yet.

        What a device writes there, in whatever layout, it finds again when it loads the same weights, or it finds
        nothing; what it cannot use it replaces. None: nothing is kept.
        """
        ...

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        """Read weights from the disk while the block runs, some time before they are asked for.

        The block is given the places in ``weights`` in the order in which they lie on the disk, which is that in which to
        ask for them. Without it, whoever reads a weight waits for the disk. What is read nowhere from a disk is not read
        ahead.

        Raises:
            CheckpointError: a tensor is missing or contradicts ``weight.ref``.
        """
        ...

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        """Return the weight as the blocks of its GGUF file, read-only uint8 ``[out, bytes of a row]``, mapped without a copy.

        None where the file does not hold it in ``weight.format``, and where that is no format of blocks. A device that
        packs blocks by itself spares the form with a byte for each code that `read` returns. docs/formats.md has the
        layout of the blocks; scales that are not finite are for `read` to refuse.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...

    def read(self, weight: Weight) -> WeightData:
        """Return the weight in ``weight.format``, quantising on the way where the checkpoint is plain.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...
