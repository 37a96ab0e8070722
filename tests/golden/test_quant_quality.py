"""What quantised weights cost the built-in model: how far its next-token distributions move."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import ActivationDtype, Format
from llmd.builtin.reference import device as reference
from llmd.embedded.engine import Engine
from llmd_backend_cpu import device as cpu

TEXT = (
    "How do I start the daemon so that it keeps the weights in fewer bits? Type `llmd serve MODEL` with the flag, "
    "then ask `llmd ps` how much memory it takes. Models come from a hub with `llmd pull`, and go with `llmd rm`."
)
# The mean Kullback-Leibler divergence from the plain weights, in nats. Measured: 0.003, 0.14, 0.58, 1.9; a
# small model has little to spare. It grows with the square of the scale of the logits, so it depends on the
# temperature that the guide's training ended with (guide/CARD.md).
MOST: dict[Format, float] = {"q8": 0.005, "q4": 0.21, "q3": 0.92, "q2": 3.0}
INFOS = {"cpu": cpu.describe(), "reference": reference.describe()}
COMPUTED = [(device, quant) for device, info in INFOS.items() for quant in MOST if quant in info.formats]

LogProbabilities = NDArray[np.float64]


@cache
def log_probabilities(
    device: str, quant: Format | None, activations: ActivationDtype = "int8"
) -> LogProbabilities:
    """``[tokens, vocab]`` after each token of the text."""
    with Engine.load(
        "guide", device, quant=quant, activations=activations, kv_dtype="f32", kv_memory=16 << 20
    ) as engine:
        wide = engine.forward(engine.tokenize(TEXT)).astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    total: LogProbabilities = np.exp(wide).sum(axis=1, keepdims=True)
    return wide - np.log(total)


def moved(quant: Format, device: str = "reference", activations: ActivationDtype = "int8") -> float:
    exact = log_probabilities("reference", None)
    other = log_probabilities(device, quant, activations)
    return float((np.exp(exact) * (exact - other)).sum(axis=1).mean())


@pytest.mark.parametrize(("device", "quant"), COMPUTED)
def test_distributions_move_as_little_as_the_bits_allow(device: str, quant: Format) -> None:
    assert 0 < moved(quant, device) < MOST[quant]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (lambda: moved("q8", activations="f32"), lambda: moved("q8")),
        (lambda: moved("q8", "cpu", "f32"), lambda: moved("q8_wide", "cpu")),
        (lambda: moved("q8_wide", "cpu"), lambda: moved("q8", "cpu")),
        (lambda: moved("q8"), lambda: moved("q4")),
        (lambda: moved("q4"), lambda: moved("q4_g64")),
        (lambda: moved("q4_g64"), lambda: moved("q3")),
        (lambda: moved("q3"), lambda: moved("q2")),
    ],
    ids=[
        "rows as they are",
        "rows as they are on the CPU",
        "rows of nine bits",
        "more bits",
        "two levels",
        "4 bits of one level",
        "3 bits",
    ],
)
def test_what_costs_more_loses_less(better: Callable[[], float], worse: Callable[[], float]) -> None:
    assert better() < worse()
