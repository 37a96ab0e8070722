"""Codes of MXFP4 weights are multiplied as they are stored; mistakes in them and their scales show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Weight
from llmd.api.messages import Load
from llmd.engine.loading import OpenDevice, load_model
from llmd.models import weight_source
from llmd.models.lowering import lower
from llmd.models.open_model import open_model
from llmd.models.split_formats import mxfp4_blocks
from llmd.models.weight_formats import format_policy
from llmd_backend_cpu.device import describe
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import tiny_model
from tests.golden.models.fp8 import WITH_FP4_EXPERTS
from tests.golden.models.tiny import TinyModel

BOUND = 1e-9

Bytes = NDArray[np.uint8]

MXFP4_CASES = (tiny_model("gpt-oss"), WITH_FP4_EXPERTS)

each_case = pytest.mark.parametrize("case", MXFP4_CASES, ids=[case.name for case in MXFP4_CASES])


@each_case
def test_the_cpu_multiplies_the_stored_codes(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    model = open_model(checkpoint(case), architectures)
    with model.checkpoint:
        format_of = format_policy(model.checkpoint, describe(), None)
        weights = lower(model.plan, 0, len(model.plan.parts), format_of=format_of).weights
        experts = [weight for weight in weights if ".experts." in weight.ref.name and weight.ref.is_matrix]
        assert len(experts) == 3 * case.config["num_hidden_layers"]
        assert {weight.format for weight in experts} == {"mxfp4"}
        assert {model.checkpoint.tensors[weight.ref.name].format for weight in experts} == {"mxfp4"}


@each_case
def test_experts_may_be_read_when_steps_use_them(
    case: TinyModel,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Sequence[Weight]] = []
    monkeypatch.setattr(weight_source.CheckpointSource, "expect", lambda _, weights: read.append(weights))
    load = Load(
        str(checkpoint(case)),
        device="cpu",
        context_len=case.context_len,
        kv_dtype="f32",
        activations="f32",
        expert_share=0.5,
    )
    expected = read_expected(case.name)
    model = load_model(load, architectures, open_device, lambda _: None)
    try:
        assert logits_error(model.core, case, expected) <= BOUND
        assert greedy_tokens(model.core, case) == expected.tokens.tolist()
        assert read
    finally:
        model.close()


def scales_of_other_rows(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.roll(scales, 1, axis=0))


def scales_of_other_groups(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.roll(scales, 1, axis=1))


def negative_exponents(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.uint8(254) - scales)


def high_half_first(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes >> np.uint8(4) | codes << np.uint8(4), scales)


def one_scale_of_all(codes: Bytes, scales: Bytes) -> Bytes:
    """Half of the last scale of the last row of a tensor, of hundreds or thousands."""
    changed = scales.copy()
    changed[-1, -1] -= 1
    return mxfp4_blocks(codes, changed)


@pytest.mark.parametrize(
    "mistake",
    [
        scales_of_other_rows,
        scales_of_other_groups,
        negative_exponents,
        high_half_first,
        one_scale_of_all,
    ],
)
@each_case
def test_wrong_codes_and_scales_break_the_bound(
    case: TinyModel,
    mistake: Callable[[Bytes, Bytes], Bytes],
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = read_expected(case.name)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) <= BOUND
    monkeypatch.setattr(weight_source, "mxfp4_blocks", mistake)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) > BOUND
