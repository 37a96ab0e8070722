"""Fused kernels of attention and of norms fit every architecture, and change no bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from llmd.api import Attention, Device, ModelPlan, Part, Pattern, Rope
from llmd.builtin.architectures.plugin import FAMILIES
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.lowering import lower
from tests.golden.compressed_tensors import DEEPSEEK_V4
from tests.golden.engines import Architectures, engine
from tests.golden.latent_tensors import LATENT
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.embedding import CASES as EMBEDDERS
from tests.golden.models.embedding import SCORERS
from tests.golden.models.tiny import TinyModel

ROTATED: Pattern = ("rope", "rope", "attention")
ADDED: Pattern = ("add", "norm")
MULTIMODAL = (
    TinyModel(
        "phi4-multimodal", {**tiny_model("phi4-mini-long").config, "architectures": ["Phi4MMForCausalLM"]}
    ),
    TinyModel(
        "gemma3-vision",
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "text_config": dict(tiny_model("gemma3").config),
        },
    ),
)
PLANS = (*CASES, *EMBEDDERS, *SCORERS, *MULTIMODAL)


def make_plan(case: TinyModel, architectures: Architectures) -> ModelPlan:
    return architectures[case.config["architectures"][0]].plan(case.config, case.context_len)


def test_every_family_has_a_case() -> None:
    classes = {case.config["architectures"][0] for case in PLANS}
    assert [family for family, names in FAMILIES.items() if not classes & set(names)] == []


def rotates_keys(part: Part) -> bool:
    """Whether a part rotates queries and keys: not keys of another layer, and not without positions."""
    rotated = any(isinstance(op, Rope) for op in part.ops)
    return rotated and any(isinstance(op, Attention) and op.k is not None for op in part.ops)


@pytest.mark.parametrize("case", PLANS, ids=[case.name for case in PLANS])
def test_rotations_fuse_with_attention_and_sums_with_norms(
    case: TinyModel, architectures: Architectures
) -> None:
    plan = make_plan(case, architectures)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", patterns=(ROTATED, ADDED))
    parts: dict[Pattern, list[int]] = {ROTATED: [], ADDED: []}
    for instruction in program.instructions:
        parts.setdefault(instruction.pattern, []).append(instruction.part)
    rotated = [n for n, part in enumerate(plan.parts) if rotates_keys(part)]
    layers = [n for n, part in enumerate(plan.parts) if part.layer is not None]
    if not plan.groups:  # an encoder: learned positions, and a norm after each sum, also of embeddings
        assert parts[ROTATED] == []
        assert parts[ADDED] == [0, *layers]
        return
    if case.config.get("model_type") in LATENT:  # other ops come between
        assert parts[ROTATED] == []
        assert parts[ADDED] == layers
        return
    if case.config.get("model_type") == DEEPSEEK_V4:  # streams are not added
        assert parts[ADDED] == []
        return
    assert parts[ROTATED] == rotated  # without the layers that keep states
    if any(op.kind == "multiply" for part in plan.parts for op in part.ops):  # after the sum of a layer
        assert set(parts[ADDED]) >= {n for n, part in enumerate(plan.parts) if part.kind == "mixer"}
        return
    if plan.parts[layers[0]].ops[0].kind == "norm":  # of the next part, or of the other half of this one
        assert list(dict.fromkeys(parts[ADDED])) == layers
    else:  # only the head begins with a norm
        assert parts[ADDED] == layers[-1:]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_fused_kernels_change_no_bit(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    ids = np.array(case.prompt, np.int32)
    rows = []
    for patterns in ((), (ROTATED, ADDED)):

        def open_device(_name: str, patterns: tuple[Pattern, ...] = patterns) -> Device:
            device = ReferenceDevice()
            device.info = msgspec.structs.replace(device.info, patterns=patterns)
            return device

        with engine(case, checkpoint(case), architectures, open_device) as core:
            rows.append(core.forward(ids))
    plain, fused = rows
    assert np.array_equal(fused, plain)
