"""Look-ups by token, position and type; a table that is also a factor; bidirectional attention; states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec
import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    Attention,
    Embed,
    EmbedTokenType,
    EncoderAttention,
    Head,
    HostHidden,
    KVGroup,
    ModelPlan,
    Op,
    Part,
    Recurrence,
    StageLimits,
    Step,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.steps.batch import select_rows
from llmd.models.lowering import lower
from llmd.testing.sources import RandomSource

TABLE = TensorRef("table", (3, 2))
VALUES = np.array([[1, 0], [0, 2], [3, 3]], np.float32)


class OneTensor:
    packed = None

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> None:
        """Return None: there is no file."""

    def read(self, weight: Weight) -> WeightData:
        return WeightData("f32", VALUES)


def test_tied_embedding_and_head() -> None:
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, TABLE, scale=2.0),)),
        Part("head", "head", None, (Head(HIDDEN, TABLE),)),
    )
    plan = ModelPlan("tied", 2, 3, 16, 16, (), parts)
    program = lower(plan, 0, 2, format_of=lambda _kind, _ref: "f32")
    stage = ReferenceDevice().load(program, OneTensor(), lambda _d, _t: None).stage({}, StageLimits(4, 1, 4))
    two = np.array([0, 1], np.int32)
    step = Step(np.array([2, 1], np.int32), two, np.array([0, 2], np.int32), (), np.zeros((0, 3), np.int32))
    ticket = stage.submit(step, None, select_rows(two))
    assert stage.raw_rows(ticket, two).tolist() == (2 * VALUES[[2, 1]] @ VALUES.T).tolist()


def test_a_step_without_token_types_is_all_of_the_first() -> None:
    parts = (Part("embed", "embed", None, (EmbedTokenType(HIDDEN, TABLE),)), Part("none", "ffn", 0, ()))
    plan = ModelPlan("types", 2, 3, 16, 16, (), parts)
    program = lower(plan, 0, 1, format_of=lambda _kind, _ref: "f32")
    stage = ReferenceDevice().load(program, OneTensor(), lambda _d, _t: None).stage({}, StageLimits(4, 1, 4))
    two = np.array([0, 1], np.int32)
    none = Step(two, two, np.array([0, 2], np.int32), (), np.zeros((0, 3), np.int32))
    mixed = msgspec.structs.replace(none, token_types=np.array([2, 1], np.int32))
    rows = [stage.hidden(stage.submit(step, None, None)).host().tolist() for step in (none, mixed)]
    assert rows == [VALUES[[0, 0]].tolist(), VALUES[[2, 1]].tolist()]


def test_encoder_attention_looks_both_ways_and_at_no_other_text() -> None:
    parts = (
        Part("before", "ffn", 0, ()),
        Part("tested", "mixer", 0, (EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 1, 2, 1.0),)),
    )
    plan = ModelPlan("encoder", 2, 3, 16, 16, (), parts)
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    stage = ReferenceDevice().load(program, OneTensor(), lambda _d, _t: None).stage({}, StageLimits(4, 2, 4))
    x = np.array([[1, 0], [0, 3], [5, 5]], np.float32)
    positions = np.array([0, 1, 0], np.int32)
    step = Step(positions, positions, np.array([0, 2, 3], np.int32), (), np.zeros((0, 3), np.int32))
    out = stage.hidden(stage.submit(step, HostHidden(x), None)).host()
    first, second = np.exp([1, 0]), np.exp([0, 9])
    expected = [first @ x[:2] / first.sum(), second @ x[:2] / second.sum(), x[2]]
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_a_recurrence_goes_on_from_the_slot_that_it_reads_and_changes_only_the_one_that_it_writes() -> None:
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=8)
    op = Recurrence(HIDDEN, HIDDEN, TensorRef("decay", (2,)), 0, 0)
    plan = ModelPlan(
        "op", 2, 3, 16, 16, (group,), (Part("before", "ffn", 0, ()), Part("op", "mixer", 0, (op,)))
    )
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    stage = (
        ReferenceDevice()
        .load(program, RandomSource(), lambda _d, _t: None)
        .stage({0: 3}, StageLimits(4, 2, 1))
    )
    decay = 1 / (1 + np.exp(-RandomSource().read(Weight(op.decay, "f32")).data.astype(np.float64)))

    def run(rows: list[list[float]], start: int, slots: list[int]) -> np.ndarray:
        step = Step(
            np.zeros(len(rows), np.int32),
            np.arange(start, start + len(rows), dtype=np.int32),
            np.array([0, len(rows)], np.int32),
            (np.array([slots], np.int32),),
            np.zeros((0, 3), np.int32),
        )
        ticket = stage.submit(step, HostHidden(np.array(rows, np.float32)), None)
        out = stage.hidden(ticket).host().copy()
        stage.release(ticket)
        return out

    a, b = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    begun = run([a.tolist(), b.tolist()], 0, [-1, 1])
    assert np.allclose(begun, [a, decay * a + b], rtol=1e-6)
    further = run([a.tolist()], 2, [1, 2])
    assert np.allclose(further, [decay * begun[1] + a], rtol=1e-6)
    assert np.array_equal(run([a.tolist()], 2, [1, 0]), further)
    assert np.allclose(run([b.tolist()], 3, [2, 2]), [decay * further[0] + b], rtol=1e-6)


@pytest.mark.parametrize(
    "op",
    [
        EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 1, 2, 1.0),
        Attention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 0, 0, 1, 1, 2, 1.0),
    ],
    ids=lambda op: op.kind,
)
def test_attention_rounds_to_the_precision_of_the_program(op: Op) -> None:
    groups = (KVGroup(0, None, 1, 2, (0,)),) if isinstance(op, Attention) else ()
    parts = (Part("before", "ffn", 0, ()), Part("tested", "mixer", 0, (op,)))
    plan = ModelPlan("attention", 2, 3, 16, 16, groups, parts)
    exact = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    two = np.array([0, 1], np.int32)
    tables = tuple(np.zeros((1, 1), np.int32) for _ in groups)
    step = Step(two, two, np.array([0, 2], np.int32), tables, np.zeros((0, 3), np.int32))
    outs = []
    for program in (exact, msgspec.structs.replace(exact, precision="bf16")):
        weights = ReferenceDevice().load(program, OneTensor(), lambda _d, _t: None)
        stage = weights.stage({group.id: 1 for group in groups}, StageLimits(4, 1, 4, kv_dtype="f32"))
        x = np.array([[1, 0], [1.001, 1.002]], np.float32)
        outs.append(stage.hidden(stage.submit(step, HostHidden(x), None)).host()[1])
    assert 1e-5 < np.abs(outs[0] - outs[1]).max() < 1e-2
