"""What rounding keys and values costs: how far next-token distributions of small models move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import KVDtype
from llmd.embedded.engine import Engine
from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine
from tests.golden.models.catalog import CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.weights import draw_tokens

# The licence: prose that the guide was not trained on, and that nobody edits.
TEXT = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
POSITIONS: dict[str, int] = {"cpu": 768, "reference": 64}  # the reference is there to be read, not to be fast
Float64 = NDArray[np.float64]
# The mean Kullback-Leibler divergence from f32, in nats. Measured on the built-in model over 768 positions:
# f16 4e-7, bf16 3e-5, int8 1.7e-4, int4 1.3e-2 (its heads have 32 elements: few for errors to cancel); over
# 13 documents of this repository int4 is 0.015, from 0.006 to 0.018, and in a conversation with the guide
# 0.003.
MOST: dict[KVDtype, float] = {"f16": 3e-6, "bf16": 2e-4, "int8": 2e-3, "int4": 2e-2}
# The same of a model of random weights whose head makes it sure of itself, over 1024 positions. Measured: f16
# 4e-7, bf16 2e-5, int8 2.5e-4, int4 1.5e-2; over the first 512 int4 is 1.9e-2.
PEAKED_ENTROPY = 2.5  # nats
PEAKED_POSITIONS: dict[str, int] = {"cpu": 1024, "reference": 512}

each_device = pytest.mark.parametrize("device", ["cpu", "reference"])


def log_softmax(logits: NDArray[np.float32], scale: float = 1.0) -> Float64:
    wide = logits.astype(np.float64) * scale
    wide -= wide.max(axis=1, keepdims=True)
    total: Float64 = np.exp(wide).sum(axis=1, keepdims=True)
    return wide - np.log(total)


def mean_entropy(log_p: Float64) -> float:
    return float(-(np.exp(log_p) * log_p).sum(axis=1).mean())


def divergence(exact: Float64, other: Float64) -> float:
    return float((np.exp(exact) * (exact - other)).sum(axis=1).mean())


def log_probabilities(device: str, kv_dtype: KVDtype) -> Float64:
    """``[tokens, vocab]`` after each token of the text."""
    with Engine.load("guide", device, kv_dtype=kv_dtype, kv_memory=16 << 20) as guide:
        return log_softmax(guide.forward(guide.tokenize(TEXT)[: POSITIONS[device]]))


@each_device
def test_distributions_move_as_little_as_the_bits_allow(device: str) -> None:
    exact = log_probabilities(device, "f32")
    moved = {kv_dtype: divergence(exact, log_probabilities(device, kv_dtype)) for kv_dtype in MOST}
    assert all(0 < moved[kv_dtype] < most for kv_dtype, most in MOST.items()), moved
    assert moved["f16"] < moved["bf16"] < moved["int8"] < moved["int4"]


@each_device
def test_a_model_that_is_sure_of_itself_stays_so(
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    tied = next(case for case in CASES if case.name == "qwen3-tied")
    positions = PEAKED_POSITIONS[device]
    config = {**tied.config, "max_position_embeddings": positions}
    case = replace(tied, name=f"qwen3-{positions}", config=config, context_len=positions)
    ids = np.array(draw_tokens(7, case.context_len, case.config["vocab_size"]), np.int32)

    def logits(kv_dtype: KVDtype) -> NDArray[np.float32]:
        with engine(
            case, checkpoint(case), architectures, open_device, device=device, kv_dtype=kv_dtype
        ) as core:
            return core.forward(ids)

    plain = logits("f32")
    # Scaling logits is scaling the head.
    scale = next(s for s in np.arange(0.5, 50, 0.25) if mean_entropy(log_softmax(plain, s)) < PEAKED_ENTROPY)
    exact = log_softmax(plain, scale)
    assert mean_entropy(exact) > PEAKED_ENTROPY - 0.5
    moved = {kv_dtype: divergence(exact, log_softmax(logits(kv_dtype), scale)) for kv_dtype in MOST}
    assert all(0 < moved[kv_dtype] < most for kv_dtype, most in MOST.items()), moved
