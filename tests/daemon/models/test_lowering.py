"""Lowering: slots, fusion and numbering; every lowered form computes the same."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    Add,
    Format,
    Instruction,
    Linear,
    ModelPlan,
    Norm,
    Part,
    Pattern,
    PluginError,
    Program,
    TensorRef,
)
from llmd.api.features import TAPS
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.headless import without_head
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapter_cases
from llmd.testing.conformance import nmse
from llmd.testing.plans import TinyModel
from llmd.testing.program_cases import program_cases
from llmd.testing.runs import run
from llmd.testing.workload import Workload, ragged

PLAN = TinyModel().plan()
PATTERNS: tuple[Pattern, ...] = (
    ("norm", "linear"),
    ("linear", "glu"),
    ("linear", "add"),
    ("norm", "linear", "glu"),
)
ROTATED: Pattern = ("rope", "rope", "attention")
ADDED: Pattern = ("add", "norm")


def f32(_kind: str, _ref: TensorRef) -> Format:
    return "f32"


def whole(patterns: tuple[Pattern, ...] = ()) -> Program:
    return lower(PLAN, 0, len(PLAN.parts), format_of=f32, patterns=patterns)


def test_every_program_of_a_plan_needs_what_the_plan_needs() -> None:
    plan = msgspec.structs.replace(PLAN, needs=("of_tomorrow",))
    ranges = ((0, 3), (3, len(plan.parts)))
    assert [lower(plan, *parts, format_of=f32).needs for parts in ranges] == [("of_tomorrow",)] * 2
    assert whole().needs == ()


@pytest.mark.parametrize("patterns", [(), PATTERNS, (ROTATED, ADDED)])
def test_an_instruction_never_writes_a_slot_that_it_reads(patterns: tuple[Pattern, ...]) -> None:
    for instruction in whole(patterns).instructions:
        written: list[int] = []
        entering: set[int] = set()
        for op in instruction.ops:
            entering |= {s for s in op.inputs if s not in written}
            written += op.outputs
        assert not entering & set(written)
        assert len(set(written)) == len(written)


@pytest.mark.parametrize("patterns", [(), PATTERNS, (ROTATED, ADDED)])
def test_no_live_value_is_overwritten(patterns: tuple[Pattern, ...]) -> None:
    """Follow the values through the slots: each read must find the value that the plan names."""
    program = whole(patterns)
    held: dict[int, str] = {}
    versions = itertools.count()
    names: dict[str, str] = {}
    parts = iter([(part, op) for part in PLAN.parts for op in part.ops])
    current = None
    for slotted in program.ops:
        part, op = next(parts)
        assert op == slotted.op
        if part is not current:
            current, names = part, {HIDDEN: names.get(HIDDEN, "")}
        assert [held[s] for s in slotted.inputs] == [names[n] for n in op.reads]
        for name, slot in zip(op.writes, slotted.outputs, strict=True):
            names[name] = held[slot] = f"{name}#{next(versions)}"


def test_slots_are_used_again() -> None:
    program = whole()
    num_values = sum(len(op.outputs) for i in program.instructions for op in i.ops)
    assert len(program.slot_widths) < num_values / 4


def test_the_longest_pattern_is_taken() -> None:
    patterns = {instruction.pattern for instruction in whole(PATTERNS).instructions}
    assert ("norm", "linear", "glu") in patterns
    assert ("linear", "add") in patterns
    assert ("linear", "glu") not in patterns


def matches(program: Program, pattern: Pattern) -> list[Instruction]:
    return [instruction for instruction in program.instructions if instruction.pattern == pattern]


def test_ops_that_exchange_values_fuse_also_over_others_and_across_parts() -> None:
    program = whole((ROTATED, ADDED))
    mixers = [n for n, part in enumerate(PLAN.parts) if part.kind == "mixer"]
    assert [found.part for found in matches(program, ROTATED)] == mixers
    assert [found.part for found in matches(program, ADDED)] == list(range(1, len(PLAN.parts) - 1))


def test_values_that_are_read_later_are_outputs_of_their_instruction() -> None:
    program = whole((ROTATED, ADDED))
    for rotated in matches(program, ROTATED):
        assert rotated.outputs == rotated.ops[-1].outputs
    *between, last = matches(program, ADDED)
    for added in between:  # the next residual connection reads the sum again
        assert added.outputs == (*added.ops[0].outputs, *added.ops[1].outputs)
    assert last.outputs == last.ops[1].outputs


def test_the_output_and_nothing_unread_is_an_output() -> None:
    ops = (Linear(HIDDEN, ("a", "b"), (TensorRef("w", (40, 40)),) * 2, (None,) * 2), Add("a", "a", HIDDEN))
    plan = ModelPlan("t", 40, 5, 16, 16, (), (Part("a", "ffn", 0, ()), Part("b", "ffn", 0, ops)))
    linear, add = lower(plan, 1, 2, format_of=f32).instructions
    assert linear.outputs == linear.ops[0].outputs[:1]
    assert add.outputs == add.ops[0].outputs


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (("rope", "rope"), False),
        (("norm", "rope", "rope"), False),
        (("linear", "norm", "rope", "rope"), True),
        (("norm", "head"), True),
    ],
)
def test_only_linked_ops_are_fused(pattern: Pattern, *, fits: bool) -> None:
    assert bool(matches(whole((pattern,)), pattern)) == fits


def fusing(*patterns: Pattern) -> ReferenceDevice:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, patterns=patterns)
    return device


@pytest.mark.parametrize("patterns", [PATTERNS, (ROTATED, ADDED)], ids=["products", "rotated and added"])
@pytest.mark.parametrize("case", ["window-f32-kv-f32", "full-q8", "headless", "encoder-f32"])
def test_fused_programs_compute_the_same_bits(case: str, patterns: tuple[Pattern, ...]) -> None:
    workload = next(one for one in program_cases() if one.name == f"program/{case}")
    expected, found = (run(device, workload, ragged(workload)) for device in (fusing(), fusing(*patterns)))
    for place, row in expected.rows.items():
        assert np.array_equal(found.rows[place], row)
    for place, fields in expected.picked.items():
        for name, field in fields.items():
            other = found.picked[place][name]
            assert np.array_equal(field, other, equal_nan=field.dtype.kind == "f"), name


@pytest.mark.parametrize("case", ["program/adapters", "adapt/value-is-kept"])
def test_fused_adapters_leave_the_values_that_are_read_as_they_were(case: str) -> None:
    patterns = (
        ("norm", "linear", "adapt", "glu"),
        ("linear", "adapt", "add"),
        ("linear", "adapt", "linear"),
    )
    workload = next(one for one in adapter_cases() if one.name == case)
    expected, found = (run(device, workload, ragged(workload)) for device in (fusing(), fusing(*patterns)))
    for place, row in expected.rows.items():
        assert np.array_equal(found.rows[place], row)


@pytest.mark.parametrize("patterns", [(), PATTERNS, (ROTATED, ADDED)])
@pytest.mark.parametrize("cuts", [(), (3,), (2, 5, 7)])
def test_fused_and_split_programs_compute_the_same(
    cuts: tuple[int, ...], patterns: tuple[Pattern, ...]
) -> None:
    workload = Workload("w", PLAN, 0, len(PLAN.parts), ((1, 2, 3) * 9, (4, 5)))
    expected = run(fusing(), workload, ragged(workload))
    assert nmse(run(fusing(*patterns), workload, ragged(workload, cuts=cuts)), expected) == 0.0


@pytest.mark.parametrize("patterns", [(), (ROTATED, ADDED)], ids=["plain", "fused"])
def test_the_hidden_states_after_a_tap_stay_in_their_slot(patterns: tuple[Pattern, ...]) -> None:
    program = lower(PLAN, 0, len(PLAN.parts), format_of=f32, patterns=patterns, taps=(4, 2, 3))
    assert program.taps == (2, 3, 4)
    for part, slot in zip(program.taps, program.tap_slots, strict=True):
        writers = [i for i in program.instructions if any(slot in op.outputs for op in i.ops)]
        *_, last = writers
        assert last.part == part
        assert slot in last.outputs


def test_a_program_has_the_taps_in_its_range() -> None:
    taps = (0, 3, 4, len(PLAN.parts) - 1)
    program = lower(PLAN, 1, 4, format_of=f32, taps=taps)
    assert (program.taps, program.tap_slots) == ((3,), (program.hidden_out,))
    assert program.needs == (TAPS,)
    assert lower(PLAN, 1, 3, format_of=f32, taps=taps).needs == ()


def test_hidden_enters_and_leaves_where_the_range_is_cut() -> None:
    first, middle, last = (
        lower(PLAN, a, b, format_of=f32) for a, b in ((0, 3), (3, 5), (5, len(PLAN.parts)))
    )
    assert (first.hidden_in, first.hidden_out is None) == (None, False)
    assert middle.hidden_in is not None
    assert middle.hidden_out is not None
    assert last.hidden_out is None


def test_hidden_leaves_a_whole_plan_that_has_no_head() -> None:
    plan = without_head(PLAN)
    program = lower(plan, 0, len(plan.parts), format_of=f32)
    assert program.hidden_in is None
    assert program.hidden_out is not None
    assert not program.has_head


def test_layers_with_states_are_numbered_in_their_group() -> None:
    plan = TinyModel(layers=8, hybrid=True).plan()
    first, last = plan.layer_parts(3, 8)
    program = lower(plan, first, last, format_of=f32)
    assert program.groups[2].layers == (3, 6, 7)
    layers = [op.kv_layer for i in program.instructions for op in i.ops if op.op.kind == "recurrence"]
    assert layers == [0, 1, 2]


def test_a_program_needs_the_features_of_what_its_layers_keep() -> None:
    plan = msgspec.structs.replace(TinyModel(hybrid=True).plan(), needs=("other",))
    with_states, without = (lower(plan, *plan.layer_parts(n, n + 1), format_of=f32) for n in (2, 1))
    assert with_states.needs == ("other", "state")
    assert without.needs == ("other",)
    latent = tuple(msgspec.structs.replace(group, kind="latent") for group in plan.groups[:2])
    plan = msgspec.structs.replace(plan, groups=(*latent, plan.groups[2]))
    assert lower(plan, 0, len(plan.parts), format_of=f32).needs == ("latent", "other", "state")


def test_groups_keep_their_ids_and_lose_the_layers_of_other_stages() -> None:
    first, last = PLAN.layer_parts(2, 3)
    program = lower(PLAN, first, last, format_of=f32)
    assert [(group.id, group.layers) for group in program.groups] == [(0, (2,)), (1, ())]
    layers = [op.kv_layer for i in program.instructions for op in i.ops if op.op.kind == "attention"]
    assert layers == [0]


def test_weights_are_numbered_once_for_each_tensor_and_format() -> None:
    tied = TensorRef("embed", (7, 8))

    def format_of(kind: str, _ref: TensorRef) -> Format:
        return "q8" if kind == "linear" else "f32"

    ops = (
        Linear(HIDDEN, ("a",), (tied,), (None,)),
        Linear(HIDDEN, ("b",), (tied,), (None,)),
    )
    plan = ModelPlan(
        "t", 8, 7, 16, 16, (), (Part("a", "ffn", 0, ()), Part("b", "ffn", 0, ops), Part("c", "ffn", 0, ()))
    )
    program = lower(plan, 1, 2, format_of=format_of)
    assert [(weight.ref, weight.format) for weight in program.weights] == [(tied, "q8")]


def test_an_op_that_reads_what_nothing_writes_is_the_plugins_fault() -> None:
    plan = ModelPlan("bad", 8, 7, 16, 16, (), (Part("only", "ffn", 0, (Norm("nowhere", "x", None, 1e-5),)),))
    with pytest.raises(PluginError, match="only: norm reads 'nowhere'"):
        lower(plan, 0, 1, format_of=f32)
