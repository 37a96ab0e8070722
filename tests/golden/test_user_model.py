"""A model of the user's own, ``LLMD_TEST_MODEL=DIR make test``:
every backend computes on it what the reference does.

Collected only where that variable is set (conftest.py).
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api import KVDtype
from llmd.api.errors import TemplateError
from llmd.embedded.engine import Engine
from llmd.host.plugin_host import PluginHost
from tests.golden.expected import nmse

TEXT = "The quick brown fox jumps over the lazy dog. 3 + 4 = 7; naïve café, 你好. def f(x):\n    return x\n"
NUM_GREEDY = 24
KV_BYTES = 256 << 20
BOUNDS: dict[KVDtype, float] = {"f32": 1e-9, "f16": 1e-4, "bf16": 1e-3, "int8": 1e-2, "int4": 1e-1}

# The reference is there to be read, not to be fast.
pytestmark = pytest.mark.timeout(3600)


class Computed(Struct, frozen=True):
    """What a device makes of the text: logits after each token, and greedy tokens after the last."""

    logits: NDArray[np.float32]
    tokens: tuple[int, ...]


def compute(device: str, kv_dtype: KVDtype) -> Computed:
    """Load the model on a device and run the text."""
    directory = os.environ["LLMD_TEST_MODEL"]
    with Engine.load(directory, device, kv_dtype=kv_dtype, kv_memory=KV_BYTES) as engine:
        ids = engine.tokenize(TEXT)
        answer = engine.generate(ids, max_tokens=NUM_GREEDY, temperature=0)
        return Computed(engine.forward(ids), answer.token_ids)


@pytest.fixture(scope="module")
def expected() -> Computed:
    return compute("reference", "f32")


@pytest.fixture(scope="module")
def devices(host: PluginHost) -> tuple[str, ...]:
    """Every device of this machine but the reference."""
    return tuple(
        device.info.name for device in host.devices() if device.ok and device.info.kind != "reference"
    )


@pytest.mark.parametrize("kv_dtype", BOUNDS)
def test_logits_are_those_of_the_reference(
    kv_dtype: KVDtype, expected: Computed, devices: tuple[str, ...]
) -> None:
    for device in devices:
        assert nmse(compute(device, kv_dtype).logits, expected.logits) <= BOUNDS[kv_dtype], device
    assert nmse(compute("reference", kv_dtype).logits, expected.logits) <= BOUNDS[kv_dtype]


def test_greedy_tokens_are_those_of_the_reference(expected: Computed, devices: tuple[str, ...]) -> None:
    for device in devices:
        assert compute(device, "f32").tokens == expected.tokens, device


def test_answers_a_question_whole_and_streamed_alike() -> None:
    question = "What is the capital of France?"
    with Engine.load(os.environ["LLMD_TEST_MODEL"], kv_memory=KV_BYTES) as engine:
        try:
            answer = engine.generate(question, max_tokens=16, temperature=0)
        except TemplateError as error:
            pytest.skip(error.message)
        streamed = engine.stream(question, max_tokens=16, temperature=0)
        assert "".join(token.text for token in streamed) == answer.text
