"""Join FP8 weights with their scales: each pair becomes one tensor.

Checkpoints have the scales of a weight beside it, for blocks of 128 x 128 elements, for rows, or for the
whole matrix: names and shapes decide. A weight is ``number * scale``, in spite of the name ``scale_inv``.

Sources: ``inference/kernel.py`` of DeepSeek-V3 (``weight_dequant``), compressed-tensors
(``quantization/lifecycle/forward.py`` of github.com/vllm-project/compressed-tensors), and for the names in
DeepSeek-V4 transformers (``quantizers/quantizer_finegrained_fp8.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.tensors import SCALED_GROUPS, TensorRef
from llmd.models.formats.fp8 import from_e8m0
from llmd.models.plain_formats import to_float32
from llmd.models.stacks import INCOMPLETE

if TYPE_CHECKING:
    from llmd.models.checkpoint import TensorInfo

FP8 = "F8_E4M3"
BLOCK_LEN = SCALED_GROUPS["fp8"]
"""Rows and columns of the blocks that share a scale."""
SCALES = ("_scale_inv", "_scale")
"""What follows the name of a weight in that of its scales: in DeepSeek's checkpoints, and in others."""
WEIGHT, SCALE = ".weight", ".scale"
"""The end of the name of a weight, and that of its scales in DeepSeek-V4."""

Float32 = NDArray[np.float32]

_TO_NUMBERS: Mapping[str, Callable[[NDArray[np.generic]], Float32]] = {
    "F32": lambda data: to_float32(data, "f32"),
    "F16": lambda data: to_float32(data, "f16"),
    "BF16": lambda data: to_float32(data, "bf16"),
    "F8_E8M0": lambda data: from_e8m0(data.view(np.uint8)),
}
"""Conversion of scales by their dtype, each exact."""


def with_scales(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return the tensors with FP8 weights and their scales as one each, named as the weight.

    Raises:
        CheckpointError: the scales of a weight are missing, or do not fit it.
    """
    found = dict(tensors)
    for name, codes in tensors.items():
        if codes.dtype != FP8:
            continue
        scales = _scales(codes, tensors)
        del found[scales.name]
        found[name] = msgspec.structs.replace(
            codes, dtype="FP8", size_bytes=codes.size_bytes + scales.size_bytes, pieces=(codes, scales)
        )
    return found


def _scales(codes: TensorInfo, tensors: Mapping[str, TensorInfo]) -> TensorInfo:
    names = _names_of_scales(codes.name)
    scales = next((tensors[name] for name in names if name in tensors), None)
    if scales is None:
        raise CheckpointError(
            f"the scales of these FP8 weights are missing, {', '.join(names[:-1])} or {names[-1]}",
            file=str(codes.file),
            tensor=codes.name,
            hint=INCOMPLETE,
        )
    if scales.dtype not in _TO_NUMBERS:
        raise _misfit(
            scales, f"has dtype {scales.dtype}; scales of FP8 weights have {', '.join(_TO_NUMBERS)}"
        )
    if _block(codes.shape, scales.shape) is None:
        raise _misfit(
            scales,
            f"has shape {list(scales.shape)}, which fits neither blocks of {BLOCK_LEN} x {BLOCK_LEN}, "
            f"nor rows, nor the whole of the weights: {list(codes.shape)}",
        )
    return scales


def _names_of_scales(name: str) -> list[str]:
    """Return how the scales of a weight may be named."""
    names = [name + end for end in SCALES]
    return [*names, name.removesuffix(WEIGHT) + SCALE] if name.endswith(WEIGHT) else names


def _misfit(scales: TensorInfo, message: str) -> CheckpointError:
    return CheckpointError(message, file=str(scales.file), tensor=scales.name, hint=INCOMPLETE)


def _block(codes: tuple[int, ...], scales: tuple[int, ...]) -> tuple[int, int] | None:
    """Return how many rows and columns share a scale; None if the shapes do not fit."""
    if len(codes) < 2:
        return None
    *stack, rows, cols = codes
    whole: tuple[int, ...] = (*stack, 1, 1)
    if scales == whole or (not stack and scales in {(), (1,)}):
        return rows, cols
    if scales in {(*stack, rows, 1), (*stack, rows)}:
        return 1, cols
    if scales == (*stack, -(-rows // BLOCK_LEN), -(-cols // BLOCK_LEN)):
        return BLOCK_LEN, BLOCK_LEN
    return None


class RowScales(msgspec.Struct, frozen=True):
    """Scales of a part of a weight, one for each group of each row."""

    values: Float32
    """``[rows, groups]``."""
    group_size: int
    """Inputs of a row that share a scale; the last group may be shorter."""


def row_scales(tensor: TensorInfo, scales: NDArray[np.generic], ref: TensorRef) -> RowScales:
    """Return the scales of the part ``ref`` of a joined tensor that is no stack of several tensors.

    ``scales`` are all of them, as stored.

    Raises:
        ArithmeticError: one is infinite or not a number.
    """
    codes, stored = tensor.pieces
    block = _block(codes.shape, stored.shape)
    assert block is not None, "`with_scales` refuses others"
    *stack, rows, _ = codes.shape
    numbers = _TO_NUMBERS[stored.dtype](scales).reshape(*stack, -(-rows // block[0]), -1)
    if stack and ref.members is not None:
        numbers = numbers[slice(*ref.members)]
        count = ref.members[1] - ref.members[0]
        ref = msgspec.structs.replace(ref, shape=(count, *ref.shape[1:]), members=None)
    if not np.isfinite(numbers).all():
        raise ArithmeticError("a scale is infinite or not a number")
    of_rows = np.repeat(numbers, block[0], axis=-2)[..., :rows, :]
    part = ref.part_of(of_rows.reshape(*ref.shape[:-1], numbers.shape[-1]))
    return RowScales(np.ascontiguousarray(part), block[1])
