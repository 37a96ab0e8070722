"""Writes a tiny model in FP8 or NVFP4 as the plain numbers that torch reads in it.

The reader of transformers needs the package accelerate. Numbers are decoded by torch (``float8_e4m3fn``) and
multiplied by the scale of their block in float32, as ``weight_dequant`` in ``inference/kernel.py`` of
github.com/deepseek-ai/DeepSeek-V3 does. Experts of DeepSeek-V4 in MXFP4 are decoded by transformers itself,
in bf16, which has all numbers of 4 bits times a power of two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

from tests.golden.checkpoint import write_safetensors
from tests.golden.fp8 import ENDS, scale_name
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.oracle.nvfp4_numbers import with_nvfp4_as_numbers
from tests.golden.tensors import as_float32, draw_tensors
from tests.golden.weights import E2M1_PAIRS, E8M0

BLOCK_LEN = 128
QUANTISATION = ("quantization_config", "expert_dtype")
"""Fields of a configuration that only say how weights are stored."""


def write_numbers(case: TinyModel, directory: Path) -> Path:
    """Write ``config.json`` without `QUANTISATION`, and all weights as float32."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {name: value for name, value in case.config.items() if name not in QUANTISATION}
    (directory / "config.json").write_text(json.dumps(config | {"torch_dtype": "float32"}))
    stored = dict(draw_tensors(case))
    method = case.config["quantization_config"]["quant_method"]
    tensors = with_nvfp4_as_numbers(method, stored) if case in NVFP4_CASES else _with_fp8_as_numbers(stored)
    write_safetensors(directory / "model.safetensors", tensors, {"format": "pt"})
    return directory


def _with_fp8_as_numbers(stored: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    tensors: dict[str, NDArray[np.generic]] = {}
    scales_of = {name: found for name in stored if (found := _scales_of(name, stored))}
    for name, tensor in stored.items():
        if name in scales_of:
            numbers = _numbers_of_4_bits if tensor.dtype == E2M1_PAIRS else _numbers
            tensors[name] = numbers(tensor, _scales(stored[scales_of[name]]))
        elif name not in scales_of.values() and not name.endswith("input_scale"):
            tensors[name] = tensor if tensor.dtype == np.int64 else as_float32(tensor)
    return tensors


def _scales_of(name: str, stored: Mapping[str, NDArray[np.generic]]) -> str | None:
    """The name of the scales of a weight; None if it has none."""
    has_scales = stored[name].dtype in (np.int8, E2M1_PAIRS)
    names = (*(name + end for end in ENDS), scale_name(name))
    return next((one for one in names if has_scales and one in stored), None)


def _scales(stored: NDArray[np.generic]) -> torch.Tensor:
    """Scales as torch has them: powers of two in their own type, others as float32."""
    if stored.dtype == E8M0:
        return torch.from_numpy(stored.view(np.uint8)).view(torch.float8_e8m0fnu)
    return torch.from_numpy(as_float32(stored))


def _numbers_of_4_bits(codes: NDArray[np.generic], scales: torch.Tensor) -> NDArray[np.float32]:
    reader = Fp8Dequantize(hf_quantizer=None)
    packed = torch.from_numpy(codes.view(np.int8))
    (found,) = reader.convert({"weight": [packed], "weight_scale_inv": [scales]}).values()
    numbers: NDArray[np.float32] = found.to(torch.float32).numpy()
    return numbers


def _numbers(codes: NDArray[np.generic], scales: torch.Tensor) -> NDArray[np.float32]:
    numbers = torch.from_numpy(codes.copy()).view(torch.float8_e4m3fn).to(torch.float32)
    by_row = scales.to(torch.float32)
    if by_row.ndim == 2 and by_row.shape != (codes.shape[0], 1):
        by_row = by_row.repeat_interleave(BLOCK_LEN, 0).repeat_interleave(BLOCK_LEN, 1)
        by_row = by_row[: codes.shape[0], : codes.shape[1]]
    return (numbers * by_row).numpy()
