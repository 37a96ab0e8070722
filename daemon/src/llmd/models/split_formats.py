"""Join the tensors of weights whose codes and scales are stored apart: each pair becomes one tensor.

The rest of llmd sees the format as GGUF files have it (docs/formats.md). Published checkpoints of gpt-oss and
of DeepSeek-V4 store MXFP4 this way, without a specification: the readers of transformers
(``integrations/mxfp4.py`` and ``integrations/finegrained_fp8.py``) were the source of names and order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.formats.row_chunks import for_row_chunks
from llmd.models.stacks import INCOMPLETE

if TYPE_CHECKING:
    from llmd.models.checkpoint import TensorInfo

CODES, SCALES = "_blocks", "_scales"
"""Ends of the names of the two tensors of an MXFP4 weight of gpt-oss."""
WEIGHT, SCALE = ".weight", ".scale"
"""The same of DeepSeek-V4."""
BYTES = "U8"
PAIRS = ("I8", "U8")
"""Dtypes of codes in DeepSeek-V4: I8 in published checkpoints."""
EXPONENTS = "F8_E8M0"
BLOCK_LEN = 32
"""Weights that share a scale; their codes are half as many bytes."""

Bytes = NDArray[np.uint8]


def joined(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return the tensors with MXFP4 weights as one each, and others as they are.

    Such a weight has the name of its codes, without `CODES`.

    Raises:
        CheckpointError: the scales of a weight are missing, or do not fit its codes.
    """
    found = dict(tensors)
    for name, codes in tensors.items():
        scales_name = _scales_name(codes, tensors)
        if scales_name is None:
            continue
        whole = name.removesuffix(CODES)
        scales = _scales(codes, tensors, scales_name)
        del found[name], found[scales_name]
        found[whole] = msgspec.structs.replace(
            codes,
            name=whole,
            dtype="MXFP4",
            shape=(*scales.shape[:-1], BLOCK_LEN * scales.shape[-1]),
            size_bytes=codes.size_bytes + scales.size_bytes,
            pieces=(codes, scales),
        )
    return found


def _scales_name(tensor: TensorInfo, tensors: Mapping[str, TensorInfo]) -> str | None:
    """Return how the scales of a tensor of codes are named; None if it holds no codes of MXFP4."""
    if tensor.name.endswith(CODES) and tensor.dtype == BYTES:
        return f"{tensor.name.removesuffix(CODES)}{SCALES}"
    # Bytes without scales of this name are other weights, of NVFP4 for example.
    name = f"{tensor.name.removesuffix(WEIGHT)}{SCALE}"
    is_weight = tensor.name.endswith(WEIGHT) and tensor.dtype in PAIRS
    return name if is_weight and name in tensors else None


def _scales(codes: TensorInfo, tensors: Mapping[str, TensorInfo], name: str) -> TensorInfo:
    """Return the scales of codes, which fit them."""
    scales = tensors.get(name)
    if scales is None:
        raise missing_scales(codes, name)
    in_pairs = BLOCK_LEN // 2
    if codes.name.endswith(CODES):
        fits = (scales.dtype, (*scales.shape, in_pairs)) == (BYTES, codes.shape)
    else:
        widened = (*scales.shape[:-1], *(in_pairs * groups for groups in scales.shape[-1:]))
        fits = (scales.dtype, widened) == (EXPONENTS, codes.shape) and len(widened) > 1
    if not fits:
        raise unfit_scales(scales, codes)
    return scales


def missing_scales(codes: TensorInfo, scales: str) -> CheckpointError:
    """Return the error that codes have no tensor of this name for their scales."""
    return CheckpointError(
        f"the scales {scales} of these codes are missing",
        file=str(codes.file),
        tensor=codes.name,
        hint=INCOMPLETE,
    )


def unfit_scales(scales: TensorInfo, codes: TensorInfo) -> CheckpointError:
    """Return the error that scales have another dtype or shape than their codes need."""
    return CheckpointError(
        f"has {scales.dtype} {list(scales.shape)}, which do not fit the codes: {list(codes.shape)}",
        file=str(scales.file),
        tensor=scales.name,
        hint=INCOMPLETE,
    )


def mxfp4_blocks(codes: Bytes, scales: Bytes) -> Bytes:
    """Return rows of MXFP4 blocks, uint8 ``[rows, 17 * groups]``.

    ``codes`` are ``[rows, 16 * groups]``, each byte with two weights next to each other, the first in its low
    half; ``scales`` are ``[rows, groups]``. In a block, the low halves are the first 16 weights.
    """
    num_rows, groups = scales.shape
    pairs = codes.reshape(num_rows, groups, 2, BLOCK_LEN // 4)
    blocks = np.empty((num_rows, groups, 1 + BLOCK_LEN // 2), np.uint8)

    def of_rows(rows: slice) -> None:
        first, second = pairs[rows, :, 0], pairs[rows, :, 1]
        blocks[rows, :, 0] = scales[rows]
        blocks[rows, :, 1::2] = (first & 0x0F) | (second << 4)
        blocks[rows, :, 2::2] = (first >> 4) | (second & 0xF0)

    for_row_chunks(num_rows, BLOCK_LEN * groups, of_rows)
    return blocks.reshape(num_rows, -1)


def split_blocks(blocks: Bytes) -> tuple[Bytes, Bytes]:
    """Return codes and scales of MXFP4 blocks: the reverse of `mxfp4_blocks`, with an axis of groups.

    Codes are uint8 ``[rows, groups, 16]``, scales ``[rows, groups]``.
    """
    rows = blocks.reshape(len(blocks), -1, 1 + BLOCK_LEN // 2)
    scales, first, second = rows[..., 0], rows[..., 1::2], rows[..., 2::2]
    low = (first & 0x0F) | (second << 4)
    high = (first >> 4) | (second & 0xF0)
    return np.concatenate([low, high], axis=-1), scales
