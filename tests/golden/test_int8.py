"""q8 on every tiny model: near a float64 model whose weights are the dequantised codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from llmd.api import Weight, WeightData
from llmd.engine import loading
from llmd.engine.loading import OpenDevice
from llmd.models.formats.dequantization import dequantize
from llmd.models.weight_source import CheckpointSource
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import nmse, read_expected
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.tiny import TinyModel

BOUND = 1e-3
LARGER_BOUNDS = {
    "granite-moe": 3e-2,
    "qwen3-5-tied": 1e-2,
    "qwen3-5-moe": 2e-3,
    "granite-hybrid": 2e-3,
    "nemotron-h-moe": 1e-2,
    "mamba2-odd": 2e-3,
    "deepseek-v3": 2e-3,
    "deepseek-v3-tied": 1e-2,
    "glm4-moe-lite": 5e-3,
    "kimi-linear": 5e-3,
    "deepseek-v32": 5e-2,
    "deepseek-v32-odd": 7e-2,
    "glm-moe-dsa": 1e-2,
    "glm-moe-dsa-shared": 5e-2,
    "deepseek-v4": 5e-3,
    "deepseek-v4-odd": 5e-2,
}
"""Of models in which rounding changes the choice between two experts or positions with nearly the same score,
or grows in a small residual stream and in the states of five layers."""


class Dequantized:
    """A source that gives q8 weights as codes times scales, exactly, in f32:
    the reference then has no codes.
    """

    packed = None

    def __init__(self, inner: CheckpointSource) -> None:
        self._inner = inner

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> None:
        """None: `read` is asked."""

    def read(self, weight: Weight) -> WeightData:
        data = self._inner.read(weight)
        return WeightData("f32", dequantize(data)) if data.format == "q8" else data


PLAIN = [case for case in CASES if not case.is_quantised]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_rounded_rows_of_a_stored_format_stay_near_transformers(
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model("gpt-oss")
    with engine(
        case, checkpoint(case), architectures, open_device, device=device, activations="int8"
    ) as core:
        assert 1e-9 < logits_error(core, case, read_expected(case.name)) <= BOUND


@pytest.mark.parametrize("case", PLAIN, ids=[case.name for case in PLAIN])
def test_logits_are_near_those_of_the_dequantised_model(
    case: TinyModel,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = np.array(case.prompt, np.int32)
    quantised = {}
    for device in ("cpu", "reference"):
        with engine(case, checkpoint(case), architectures, open_device, device=device, quant="q8") as core:
            quantised[device] = core.forward(ids)
    with monkeypatch.context() as patch:
        patch.setattr(loading, "CheckpointSource", lambda *opened: Dequantized(CheckpointSource(*opened)))
        with engine(
            case, checkpoint(case), architectures, open_device, device="reference", quant="q8"
        ) as core:
            exact = core.forward(ids)
    errors = {device: nmse(logits, exact) for device, logits in quantised.items()}
    assert max(errors.values()) < LARGER_BOUNDS.get(case.name, BOUND), errors
    assert min(errors.values()) > 0, "activations were quantised"
