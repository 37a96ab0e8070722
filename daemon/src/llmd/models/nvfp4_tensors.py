"""Join the tensors of an NVFP4 weight: codes, scales of 16 inputs, and the scale of the whole matrix.

The names decide, which are those of the exporters of checkpoints: ModelOpt (``modelopt/torch/export`` of
github.com/NVIDIA/Model-Optimizer), which multiplies by the scale of the matrix; and llm-compressor
(``compressed_tensors/compressors/nvfp4`` of github.com/vllm-project/compressed-tensors), which divides by it.
A GGUF file has blocks of codes and scales, and may have a scale for each matrix beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import GroupScales, TensorRef, WeightData
from llmd.models.formats.nvfp4 import GROUP, of_blocks, of_pairs, scales_of
from llmd.models.split_formats import missing_scales, unfit_scales

if TYPE_CHECKING:
    from llmd.models.checkpoint import TensorInfo

View = Callable[["TensorInfo"], NDArray[np.generic]]

NVFP4 = "NVFP4"
"""The dtype of a joined tensor, and of the blocks in a GGUF file."""


class _Names(msgspec.Struct, frozen=True):
    """What follows the name of a module in the names of a weight's tensors."""

    codes: str
    scales: str
    whole: str


MODELOPT = _Names("weight", "weight_scale", "weight_scale_2")
LLM_COMPRESSOR = _Names("weight_packed", "weight_scale", "weight_global_scale")
GGUF = _Names("weight", "", "scale")


def with_nvfp4(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return the tensors with NVFP4 weights as one each, named ``….weight``; others as they are.

    Raises:
        CheckpointError: the scales of a weight are missing, or do not fit its codes.
    """
    found = dict(tensors)
    for name, codes in tensors.items():
        names = _names_of(codes, tensors)
        if names is None:
            continue
        module = name.removesuffix(names.codes)
        pieces = (codes, *_scales_of(module, names, codes, tensors))
        for piece in pieces:
            del found[piece.name]
        shape = codes.shape if names is GGUF else (*codes.shape[:-1], 2 * codes.shape[-1])
        found[f"{module}weight"] = msgspec.structs.replace(
            codes,
            name=f"{module}weight",
            dtype=NVFP4,
            shape=shape,
            size_bytes=sum(piece.size_bytes for piece in pieces),
            pieces=pieces,
        )
    return found


def _names_of(codes: TensorInfo, tensors: Mapping[str, TensorInfo]) -> _Names | None:
    """Return the names of the weight whose codes a tensor holds; None if it holds no codes of NVFP4."""
    if codes.dtype == NVFP4:
        return GGUF
    for names in (LLM_COMPRESSOR, MODELOPT):
        module = codes.name.removesuffix(names.codes)
        if codes.dtype == "U8" and codes.name != module and f"{module}{names.whole}" in tensors:
            return names
    return None


def _scales_of(
    module: str, names: _Names, codes: TensorInfo, tensors: Mapping[str, TensorInfo]
) -> tuple[TensorInfo, ...]:
    """Return the tensors of a weight besides its codes, which fit them."""
    whole = tensors.get(f"{module}{names.whole}")
    if whole is not None:
        of_each = codes.shape[:-2]
        if whole.dtype != "F32" or whole.shape not in {of_each, (*of_each, 1), (*of_each, 1, 1), (1,)}:
            raise unfit_scales(whole, codes)
    if names is GGUF:
        return () if whole is None else (whole,)
    assert whole is not None, "`_names_of` looks for it"
    scales = tensors.get(f"{module}{names.scales}")
    if scales is None:
        raise missing_scales(codes, f"{module}{names.scales}")
    is_fp8 = scales.dtype == "F8_E4M3" and len(scales.shape) > 0
    if not is_fp8 or codes.shape != (*scales.shape[:-1], GROUP // 2 * scales.shape[-1]):
        raise unfit_scales(scales, codes)
    return scales, whole


def read_nvfp4(tensor: TensorInfo, ref: TensorRef, part: View, whole: View) -> WeightData:
    """Return the part ``ref`` of a joined tensor that is no stack of several tensors.

    ``part`` returns this part of a piece, ``[rows, bytes]``, ``whole`` all of a piece, as stored.

    Raises:
        ArithmeticError: a scale is infinite or not a number.
    """
    codes, *scales = tensor.pieces
    stored = part(codes).view(np.uint8)
    if codes.dtype == NVFP4:
        numbers, of_groups = of_blocks(stored)
    else:
        numbers, of_groups = of_pairs(stored), part(scales.pop(0)).view(np.uint8)
    of_matrices = _of_matrices(whole(scales[0]), ref) if scales else np.ones(1, np.float32)
    of_rows = np.repeat(of_matrices, len(numbers) // len(of_matrices))[:, None]
    divides = codes.name.endswith(LLM_COMPRESSOR.codes)
    found = scales_of(of_groups, of_rows, divides=divides)
    return WeightData("nvfp4", numbers, GroupScales(found), group_size=GROUP)


def _of_matrices(stored: NDArray[np.generic], ref: TensorRef) -> NDArray[np.float32]:
    """Return the scale of the whole matrix, or those of the members of a stack that a part has."""
    numbers = stored.view(np.float32).reshape(-1)
    return numbers[slice(*ref.members)] if len(numbers) > 1 and ref.members is not None else numbers
