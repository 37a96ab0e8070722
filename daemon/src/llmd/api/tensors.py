"""Names of checkpoint tensors, and the weights that a device receives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS, OUTLIER_STEP

Format = str
"""How a weight is stored: one of `PLAIN_FORMATS`, `SCALED_FORMATS` or `INTEGER_FORMATS`."""

PLAIN_FORMATS: tuple[Format, ...] = ("f32", "f16", "bf16")
"""The formats that are not quantised."""

SCALED_GROUPS: Mapping[Format, int] = {"fp8": 128, "nvfp4": 16}
"""Inputs of a row that share a scale in each scaled format; in ``fp8``, the whole row may share one."""

SCALED_FORMATS: tuple[Format, ...] = tuple(SCALED_GROUPS)
"""Formats of small floating-point numbers, in groups that share a float32 scale. They multiply activations as
plain weights do: nothing is rounded to integers."""

MEMBER = "*"
"""In the name of a stack whose members are tensors of their own: the number of a member."""


class TensorRef(msgspec.Struct, frozen=True):
    """A tensor of the checkpoint, or a part of it.

    A *stack* is a tensor ``[members, ...]`` of matrices or vectors of one shape, such as those of the experts
    of a layer. The checkpoint stores it as one tensor, in which matrices may be one below the other, or each
    member as a tensor of its own: then the name has `MEMBER` in place of the member's number, from 0.
    """

    name: str
    """Name in the checkpoint."""
    shape: tuple[int, ...]
    """Shape of the whole tensor in the checkpoint; of a stack, with all members."""
    rows: tuple[int, int] | None = None
    """Half-open range of the first axis, in a stack of that of each member; splits fused tensors (one
    ``qkv_proj`` read as three weights) without a copy."""
    period: int | None = None
    """If set, ``rows`` is a range of each run of this many rows: for fused tensors whose parts alternate."""
    is_stack: bool = False
    """Whether the first axis of ``shape`` counts members."""
    members: tuple[int, int] | None = None
    """Half-open range of the members of a stack."""
    is_transposed: bool = False
    """Whether the checkpoint stores matrices as ``[in, out]``; `rows` are those of ``[out, in]``."""
    columns: tuple[int, int] | None = None
    """Half-open range of the inputs of transposed matrices."""
    integers_below: int | None = None
    """If set, the checkpoint stores integers of at least 0 that are less than this; they are read as f32."""

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix, or a stack of matrices."""
        return len(self.shape) - self.is_stack == 2

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Shape of the whole tensor with matrices as ``[out, in]``."""
        if not self.is_transposed:
            return self.shape
        return (*self.shape[:-2], self.shape[-1], self.shape[-2])

    @property
    def view_shape(self) -> tuple[int, ...]:
        """Shape of the ranges of members and rows."""
        whole = self.whole_shape
        stack, (rows, *others) = whole[: self.is_stack], whole[self.is_stack :]
        if self.members is not None:
            stack = (self.members[1] - self.members[0],)
        if self.rows is not None:
            rows = (self.rows[1] - self.rows[0]) * (rows // self.period if self.period else 1)
        if self.columns is not None:
            others = [self.columns[1] - self.columns[0]]
        return (*stack, rows, *others)

    @property
    def data_shape(self) -> tuple[int, ...]:
        """Shape of the array that holds it: the matrices of a stack are one below the other."""
        shape = self.view_shape
        return (math.prod(shape[:-1]), shape[-1]) if self.is_matrix else shape

    def part_of(self, whole: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return this part of the whole tensor, in its `data_shape`: a view if it is contiguous there.

        ``whole`` has the axes of the tensor; instead of elements, the last one may be bytes of blocks.
        """
        part = whole if self.members is None else whole[slice(*self.members)]
        if self.is_transposed:
            part = part.swapaxes(-1, -2)[..., slice(*self.columns or (None,))]
        if self.rows is not None:
            axes = part.shape[: self.is_stack], part.shape[self.is_stack + 1 :]
            runs = part.reshape(*axes[0], -1, self.period or part.shape[self.is_stack], *axes[1])
            part = runs[(slice(None),) * (self.is_stack + 1) + (slice(*self.rows),)]
            part = part.reshape(*axes[0], -1, *axes[1])
        return part.reshape(-1, part.shape[-1]) if self.is_matrix else part

    @property
    def as_stored(self) -> TensorRef:
        """The same part of the tensor with matrices as the checkpoint stores them: columns are rows."""
        return msgspec.structs.replace(self, is_transposed=False, rows=self.columns, columns=None)

    def member(self, number: int) -> TensorRef:
        """Return one member of a stack, as a stack of one."""
        return msgspec.structs.replace(self, members=(number, number + 1))


class Weight(msgspec.Struct, frozen=True):
    """One weight as a program uses it: a tensor in a format."""

    ref: TensorRef
    format: Format

    @property
    def num_bytes(self) -> int:
        """Bytes in the format, including scales."""
        shape = self.ref.data_shape
        if self.format in PLAIN_FORMATS:
            return math.prod(shape) * (4 if self.format == "f32" else 2)
        if self.format in SCALED_FORMATS:
            return shape[0] * (shape[1] + 4 * -(-shape[1] // SCALED_GROUPS[self.format]))
        return shape[0] * INTEGER_FORMATS[self.format].weight_bytes(shape[1])


class GroupScales(msgspec.Struct, frozen=True):
    """Scales or minimums, one for each group of each row, in one or two levels."""

    coarse: NDArray[np.floating]
    """``[out, groups]``, or ``[out, coarse groups]`` if there is a fine level; float16, or float32 in scaled
    formats and for powers of two (``mxfp4``)."""
    fine: NDArray[np.integer] | None = None
    """int8 or uint8 ``[out, groups]``, multiplied by the coarse value; None: one level."""

    def values(self) -> NDArray[np.float32]:
        """Return the exact values ``[out, groups]``."""
        coarse = self.coarse.astype(np.float32)
        if self.fine is None:
            return coarse
        num_groups = self.fine.shape[1]
        per_coarse = -(-num_groups // max(coarse.shape[1], 1))
        values: NDArray[np.float32] = np.repeat(coarse, per_coarse, axis=1)[:, :num_groups] * self.fine
        return values

    def rows(self, rows: slice | NDArray[np.intp]) -> GroupScales:
        """Return some rows: a view if they are a slice."""
        return GroupScales(self.coarse[rows], None if self.fine is None else self.fine[rows])

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays that are not None."""
        return (self.coarse,) if self.fine is None else (self.coarse, self.fine)


class Outliers(msgspec.Struct, frozen=True):
    """Corrections to integers that are out of the range of the codes. Unused entries are 0 in both arrays."""

    columns: NDArray[np.uint8]
    """``[out, groups, outliers]``: index of the input within its group."""
    residuals: NDArray[np.int8]
    """``[out, groups, outliers]``, times `OUTLIER_STEP`, added to that integer. Several for one input add
    up."""

    def add_to(self, integers: NDArray[np.int16], group_size: int) -> None:
        """Add the residuals to integers ``[out, in]``."""
        num_rows, num_groups, count = self.columns.shape
        first = np.arange(num_groups, dtype=np.int64)[:, None] * group_size
        places = (first + self.columns).reshape(num_rows, num_groups * count)
        residuals = self.residuals.astype(np.int16).reshape(places.shape)
        np.add.at(integers, (np.arange(num_rows)[:, None], places), OUTLIER_STEP * residuals)

    def rows(self, rows: slice | NDArray[np.intp]) -> Outliers:
        """Return some rows: a view if they are a slice."""
        return Outliers(self.columns[rows], self.residuals[rows])

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """Both arrays."""
        return (self.columns, self.residuals)


class WeightData(msgspec.Struct, frozen=True):
    """The contents of a weight, as read-only C-contiguous arrays, valid until the `TensorSource` is closed.

    In an integer format, weight ``[o, i]`` of group ``g`` is
    ``scale[o, g] * integer[o, i] + minimum[o, g]`` in float32: the product is exact, the sum rounded once.
    In a scaled format, it is ``scale[o, g]`` times a number, rounded once.
    """

    format: Format
    data: NDArray[np.generic]
    """Has the shape `TensorRef.data_shape`. Plain formats: float32, float16, or uint16 holding bf16 bits,
    usually mapped from the file without a copy and aligned only to the element size. Integer formats: uint8
    codes ``[out, in]``, each in its own byte. Scaled formats: uint8 ``[out, in]``, the bits of
    finite numbers of type e4m3fn; of ``fp8`` usually mapped."""
    scales: GroupScales | None = None
    """None in plain formats."""
    minimums: GroupScales | None = None
    """None if the format has no minimums."""
    group_size: int = 0
    """Inputs of a row that share a scale; the last group of a row may be shorter."""
    outliers: Outliers | None = None
    """Set if the format has outliers."""

    def integers(self) -> NDArray[np.int8] | NDArray[np.int16]:
        """Decode the codes of an integer format to integers ``[out, in]``: int16 with outliers, else int8."""
        form = INTEGER_FORMATS[self.format]
        if form.book:
            return np.array(form.book, np.int8)[self.data.view(np.uint8)]
        integers = (self.data.view(np.uint8) - np.uint8(form.zero)).view(np.int8)
        if self.outliers is None:
            return integers
        wide = integers.astype(np.int16)
        self.outliers.add_to(wide, self.group_size)
        return wide

    def rows(self, rows: slice | NDArray[np.intp]) -> WeightData:
        """Return some rows: a view if they are a slice."""
        scales, minimums = (
            None if group is None else group.rows(rows) for group in (self.scales, self.minimums)
        )
        outliers = None if self.outliers is None else self.outliers.rows(rows)
        return WeightData(self.format, self.data[rows], scales, minimums, self.group_size, outliers)

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """All arrays that are not None: codes or elements, scales, minimums, outliers."""
        parts = (part.arrays for part in (self.scales, self.minimums, self.outliers) if part is not None)
        return (self.data, *itertools.chain.from_iterable(parts))


class TensorSource(Protocol):
    """The weights that a device reads while it loads. Thread-safe."""

    @property
    def packed(self) -> Path | None:
        """File in which the device may keep its packed weights, in any layout; None: do not keep them.

        The file is reserved for this device and these weights. On the next load of the same weights it has
        what the device wrote, or does not exist. Replace a file that you cannot use.
        """
        ...

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        """Read weights ahead from disk while the ``with`` block runs.

        The context manager returns indices into ``weights`` in the order of the weights on disk: ask for them
        in this order. Without it, each read waits for the disk. Weights that are not on a disk are not read
        ahead.

        Raises:
            CheckpointError: a tensor is missing or contradicts ``weight.ref``.
        """
        ...

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        """Return the blocks of a weight as GGUF files have them: read-only uint8 ``[out, bytes of a row]``.

        They are not copied if the file has them so. Return None if the file does not store it in
        ``weight.format``, or if that is not a block format. A device that repacks blocks itself avoids the
        one-byte codes of `read`. docs/formats.md describes the blocks. Scales that are not finite are not
        checked here; `read` refuses them.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...

    def read(self, weight: Weight) -> WeightData:
        """Return the weight in ``weight.format``, quantised if the checkpoint is plain.

        Raises:
            CheckpointError: the tensor is missing or contradicts ``weight.ref``.
        """
        ...
