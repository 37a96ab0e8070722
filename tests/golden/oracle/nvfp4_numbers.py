"""The numbers of NVFP4 weights in a tiny model, computed with torch.

Formulas: ``NVFP4QTensor.dequantize`` of github.com/NVIDIA/Model-Optimizer for ModelOpt, and
``dequantize`` in ``quantization/lifecycle/forward.py`` of github.com/vllm-project/compressed-tensors. Scales
are decoded by torch (``float8_e4m3fn``). The numbers of 4 bits are those of the OCP Microscaling Formats
specification, section 5.3.3: torch has their type (``float4_e2m1fn_x2``) without a conversion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from tests.golden.nvfp4 import GROUP, LAST_SCALE
from tests.golden.tensors import as_float32

NOT_WEIGHTS = ("weight_scale", "input_scale", "input_global_scale", *LAST_SCALE.values())


def with_nvfp4_as_numbers(
    method: str, stored: Mapping[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.float32]]:
    """All weights as float32."""
    found = {}
    for name, tensor in stored.items():
        module, _, last = name.rpartition(".")
        whole = stored.get(f"{module}.{LAST_SCALE[method]}")
        if last in NOT_WEIGHTS:
            continue
        if whole is None or last == "bias":
            found[name] = as_float32(tensor)
        else:
            found[f"{module}.weight"] = _numbers(method, tensor, stored[f"{module}.weight_scale"], whole)
    return found


def _numbers(method: str, *parts: NDArray[np.generic]) -> NDArray[np.float32]:
    packed, scales, whole = (torch.from_numpy(np.array(part)) for part in parts)
    codes = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2).to(torch.int64)
    exponent, fraction = codes >> 1 & 3, codes & 1
    normal = torch.ldexp(1 + fraction / 2, exponent - 1)
    numbers = torch.where(exponent == 0, fraction / 2, normal) * torch.where(codes < 8, 1.0, -1.0)
    of_groups = scales.view(torch.float8_e4m3fn).to(torch.float32)
    of_groups = of_groups * whole if method == "modelopt" else of_groups / whole
    product: NDArray[np.float32] = (numbers * of_groups.repeat_interleave(GROUP, -1)).numpy()
    return product
