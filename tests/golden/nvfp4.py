"""Weights of tiny models in NVFP4: codes, scales of 16 inputs, and the scale of the whole matrix.

Sources: NVIDIA 2025, "Pretraining Large Language Models with NVFP4" (arXiv:2509.25149). Names, the order of
codes and the meaning of the last scale are those of checkpoints that ModelOpt and llm-compressor wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.fp8 import MAGNITUDES as SCALES
from tests.golden.fp8 import is_quantised
from tests.golden.mxfp4 import TYPICAL, e2m1_codes
from tests.golden.weights import random_words

Stored = NDArray[np.generic]

GROUP = 16
LAST_SCALE = {"modelopt": "weight_scale_2", "compressed-tensors": "weight_global_scale"}
"""By method, what the scale of the whole matrix is called in place of ``weight``: a factor, or a divisor."""


def is_nvfp4(config: Mapping[str, Any], name: str) -> bool:
    """Whether a tensor is in NVFP4: the projections in layers, if the configuration says so."""
    quantization = config.get("quantization_config", {})
    says = "NVFP4" in (quantization.get("quant_algo"), quantization.get("format", "")[:5].upper())
    return says and is_quantised(config, name)


def nvfp4_tensors(
    config: Mapping[str, Any], seed: int, name: str, values: NDArray[np.float32]
) -> Iterator[tuple[str, Stored]]:
    """The codes, uint8 ``[rows, cols / 2]``, the scales, int8 with the bits of numbers, and the last scale.

    Weights get about the given values times a factor of 0.5 to 2 for each scale, so that each of them counts.
    """
    rows, cols = values.shape
    module = name.removesuffix("weight")
    method = config["quantization_config"]["quant_method"]
    words = random_words(seed, f"{name}_scale", rows * cols // GROUP).reshape(rows, -1)
    factors = np.exp2((words % np.uint64(256)).astype(np.float64) / 128 - 1)
    # A scale of 7.3 on average: the codes then fill their range, and few scales are equal.
    last = float(np.std(values)) / TYPICAL / 7.3
    scales = _nearest(7.3 * factors, SCALES)
    groups = (values / np.std(values) * TYPICAL).reshape(rows, -1, GROUP)
    pairs = e2m1_codes(groups).reshape(rows, -1, 2)
    packed = "weight" if method == "modelopt" else "weight_packed"
    yield module + packed, pairs[..., 0] | pairs[..., 1] << 4
    yield f"{module}weight_scale", scales.view(np.int8)
    if method == "modelopt":
        yield f"{module}weight_scale_2", np.array(last, np.float32)
        yield f"{module}input_scale", np.array(0.01, np.float32)
    else:
        yield f"{module}weight_global_scale", np.array([1 / last], np.float32)
        yield f"{module}input_global_scale", np.array([300], np.float32)


def _nearest(numbers: NDArray[np.floating], table: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.searchsorted((table[1:] + table[:-1]) / 2, numbers).astype(np.uint8)
