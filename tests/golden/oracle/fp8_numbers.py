"""Writes a tiny model in FP8 or NVFP4 as the plain numbers that torch reads in it.

The reader of transformers needs the package accelerate. Numbers are decoded by torch (``float8_e4m3fn``) and
multiplied by the scale of their block in float32, as ``weight_dequant`` in ``inference/kernel.py`` of
github.com/deepseek-ai/DeepSeek-V3 does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tests.golden.checkpoint import write_safetensors
from tests.golden.fp8 import ENDS
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.oracle.nvfp4_numbers import with_nvfp4_as_numbers
from tests.golden.tensors import as_float32, draw_tensors

BLOCK_LEN = 128


def write_numbers(case: TinyModel, directory: Path) -> Path:
    """Write ``config.json`` without its ``quantization_config``, and all weights as float32."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {name: value for name, value in case.config.items() if name != "quantization_config"}
    (directory / "config.json").write_text(json.dumps(config | {"torch_dtype": "float32"}))
    stored = dict(draw_tensors(case))
    method = case.config["quantization_config"]["quant_method"]
    tensors = with_nvfp4_as_numbers(method, stored) if case in NVFP4_CASES else _with_fp8_as_numbers(stored)
    write_safetensors(directory / "model.safetensors", tensors, {"format": "pt"})
    return directory


def _with_fp8_as_numbers(stored: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.float32]]:
    tensors = {}
    for name, tensor in stored.items():
        scales = next((stored[name + end] for end in ENDS if name + end in stored), None)
        if scales is not None:
            tensors[name] = _numbers(tensor, as_float32(scales))
        elif not name.endswith(ENDS):
            tensors[name] = as_float32(tensor)
    return tensors


def _numbers(codes: NDArray[np.generic], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    numbers = torch.from_numpy(codes.copy()).view(torch.float8_e4m3fn).to(torch.float32)
    by_row = torch.from_numpy(scales.copy())
    if by_row.ndim == 2 and by_row.shape != (codes.shape[0], 1):
        by_row = by_row.repeat_interleave(BLOCK_LEN, 0).repeat_interleave(BLOCK_LEN, 1)
        by_row = by_row[: codes.shape[0], : codes.shape[1]]
    return (numbers * by_row).numpy()
