"""Engines on a simulated card: tiny models answer as in transformers, the guide as on the reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from llmd.api import SCALED_FORMATS, Device, DeviceInfo, Weight
from llmd.api.messages import Load
from llmd.builtin.guide import guide_directory
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.engine.loading import load_model
from llmd.models.lowering import lower
from llmd.models.open_model import open_model
from llmd.models.weight_formats import format_policy
from llmd.testing.bounds import MAX_NMSE
from llmd_backend_cpu.device import describe as describe_cpu
from llmd_backend_cuda.device import describe
from tests.cuda.simulated import CARD, NEEDS_COMPILER, open_device
from tests.golden.engines import Architectures, engine, expected_rows, greedy_tokens
from tests.golden.expected import nmse, read_expected
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import CASES, OTHERWISE_IN_GGUF, ROUNDED_ON_CARDS, tiny_model
from tests.golden.models.tiny import TinyModel
from tests.serving.cores import run, submit

pytestmark = NEEDS_COMPILER

BOUND = MAX_NMSE["f16"]["f16"].program


CHOOSING_OTHERWISE = ("deepseek-v4-odd",)
"""Models in float32 whose rows use other experts, or see other vectors, if weights are rounded to float16."""
MODELS = [case for case in (*CASES, *ROUNDED_ON_CARDS) if case.name not in CHOOSING_OTHERWISE]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_answers_are_those_of_transformers(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    """Logits are compared with those of the reference that rounds rows to float16."""
    check_answers(case, checkpoint(case), architectures)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CHOOSING_OTHERWISE)
def test_logits_are_those_of_the_reference_if_weights_need_no_rounding(
    name: str, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    """The weights are stored in float16, unlike those of which transformers' answers are known. Decoding says
    what a prompt of the same tokens does, with the logits of the reference.
    """
    case = dataclasses.replace(tiny_model(name), name=f"{name}-f16", dtype="f16")
    path = checkpoint(case)
    with rounding(open_device(), case, path, architectures) as core:
        tokens = greedy_tokens(core, case)
        ids = np.array([*case.prompt, *tokens], np.int32)
        logits = core.forward(ids)
    assert logits[len(case.prompt) - 1 : -1].argmax(axis=1).tolist() == tokens
    with rounding(ReferenceDevice(), case, path, architectures) as core:
        assert nmse(logits, core.forward(ids)) <= BOUND


@pytest.mark.parametrize("case", ROUNDED_ON_CARDS, ids=lambda case: case.name)
def test_numbers_of_8_bits_are_kept_as_on_the_cpu(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    model = open_model(checkpoint(case), architectures)

    def weights(info: DeviceInfo) -> tuple[Weight, ...]:
        format_of = format_policy(model.checkpoint, info, None)
        return lower(model.plan, 0, len(model.plan.parts), format_of=format_of).weights

    with model.checkpoint:
        kept = weights(describe(CARD))
        assert kept == weights(describe_cpu())
    assert sum(weight.format in SCALED_FORMATS for weight in kept) > 5


def check_answers(case: TinyModel, path: Path, architectures: Architectures) -> None:
    expected = read_expected(case.name)
    with rounding(ReferenceDevice(), case, path, architectures) as core:
        rounded = expected_rows(core, case, expected)
    with rounding(open_device(), case, path, architectures) as core:
        assert nmse(expected_rows(core, case, expected), rounded) <= BOUND
        assert greedy_tokens(core, case) == expected.tokens.tolist()


def rounding(
    device: Device, case: TinyModel, path: Path, architectures: Architectures
) -> AbstractContextManager[EngineCore]:
    """An engine that rounds rows, keys and values to float16."""
    return engine(case, path, architectures, lambda _name: device, activations="f16", kv_dtype="f16")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OTHERWISE_IN_GGUF)
def test_gguf_files_have_the_same_answers(name: str, tmp_path: Path, architectures: Architectures) -> None:
    case = tiny_model(name)
    check_answers(case, write_gguf(case, tmp_path / "m.gguf"), architectures)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_guide_says_what_it_says_on_the_reference_backend(architectures: Architectures) -> None:
    devices: tuple[Device, ...] = (open_device(), ReferenceDevice())
    mine, expected = (said_by_the_guide(device, architectures) for device in devices)
    assert mine == expected
    assert len(mine) == 2


def said_by_the_guide(device: Device, architectures: Architectures) -> dict[int, list[int]]:
    """Return the tokens of two greedy sequences that run together."""
    load = Load(str(guide_directory()), device=device.info.name, context_len=64, slots=2, activations="f16")
    model = load_model(load, architectures, lambda _name: device, lambda _: None)
    try:
        outputs = run(model.core, submit(1, 9, 8), submit(2, 5, 8))
        return {name: [one.token for one in tokens] for name, tokens in outputs.items()}
    finally:
        model.close()
