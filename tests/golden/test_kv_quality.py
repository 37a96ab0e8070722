"""What rounding keys and values costs the built-in model: how far its next-token distributions move."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import KVDtype
from llmd.embedded.engine import Engine

TEXT = (
    "How do I start the daemon so that it keeps the KV cache in fewer bits? Type `llmd serve MODEL` with the flag, "
    "then ask `llmd ps` how much memory it takes. Models come from a hub with `llmd pull`, and go with `llmd rm`."
)
# The mean Kullback-Leibler divergence from f32, in nats. Measured: f16 3e-7, bf16 2e-5, int8 1e-4.
MOST: dict[KVDtype, float] = {"f16": 3e-6, "bf16": 2e-4, "int8": 1e-3}


def log_probabilities(device: str, kv_dtype: KVDtype) -> NDArray[np.float64]:
    """``[tokens, vocab]`` after each token of the text."""
    with Engine.load("guide", device, kv_dtype=kv_dtype, kv_memory=16 << 20) as engine:
        wide = engine.forward(engine.tokenize(TEXT)).astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    total: NDArray[np.float64] = np.exp(wide).sum(axis=1, keepdims=True)
    return wide - np.log(total)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_distributions_move_as_little_as_the_bits_allow(device: str) -> None:
    exact = log_probabilities(device, "f32")
    moved = {}
    for kv_dtype in MOST:
        other = log_probabilities(device, kv_dtype)
        moved[kv_dtype] = float((np.exp(exact) * (exact - other)).sum(axis=1).mean())
    assert all(0 < moved[kv_dtype] < most for kv_dtype, most in MOST.items()), moved
    assert moved["f16"] < moved["bf16"] < moved["int8"]
