from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import Draws, LateEdits, MemoryBudgetError, Selection, Span, StageLimits, Step, Ticket
from llmd.api.draws import SAMPLED
from llmd.engine.steps.batch import select_rows
from llmd.models.lowering import lower
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.null_rows import STRIDE
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.serving.cores import make_core, run, submit

ONE = np.zeros(1, np.int32)
MakeStage = Callable[[NullDevice], NullStage]


@pytest.fixture
def make_stage() -> MakeStage:
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32")

    def make(device: NullDevice) -> NullStage:
        assert device.check(program) == []
        parts = device.load(program, RandomSource(), lambda _done, _total: None)
        return parts.stage({0: 4}, StageLimits(8, 2, 2))

    return make


@pytest.fixture
def stage(make_stage: MakeStage) -> NullStage:
    return make_stage(NullDevice(lambda: 0.0))


def step(token: int = 1, feed: Ticket | None = None, position: int = 0) -> Step:
    one = np.zeros(1, np.int32)
    table = (np.zeros((1, 1), np.int32),)
    return Step(
        one + token, one + position, np.array([0, 1], np.int32), table, np.zeros((0, 3), np.int32), feed
    )


def test_the_best_token_depends_on_the_position_alone(stage: NullStage) -> None:
    selection = select_rows(np.zeros(1, np.int32), np.full(1, 0.5, np.float32))
    for token in (1, 2):
        ticket = stage.submit(step(token, position=3), None, selection)
        result = stage.wait(ticket, 0.0)
        assert result.ids[0, :3].tolist() == [(3 * STRIDE + j) % 131 for j in range(3)]
        row = stage.rows(ticket, np.zeros(1, np.int32))[0]
        assert np.argsort(-row, kind="stable")[:3].tolist() == result.ids[0, :3].tolist()
        assert result.raw_logsumexp[0] == pytest.approx(np.log(np.exp(row.astype(np.float64)).sum()))
        assert result.edited_logsumexp[0] == pytest.approx(np.log(np.exp(2.0 * row.astype(np.float64)).sum()))
        p = np.exp(2.0 * row.astype(np.float64)) / np.exp(2.0 * row.astype(np.float64)).sum()
        assert result.edited_entropy[0] == pytest.approx(-(p * np.log(p)).sum())
        assert result.edited_deviation[0] == pytest.approx(np.std(row))
        assert result.num_allowed[0] == len(row)
        stage.release(ticket)


def test_a_step_takes_its_time_after_the_one_before(make_stage: MakeStage) -> None:
    now = [0.0]
    paused: list[float] = []
    stage = make_stage(NullDevice(lambda: now[0], step_s=2.0, pause=paused.append))
    nothing = select_rows(np.zeros(1, np.int32))
    tickets = [stage.submit(step(), None, nothing) for _ in range(2)]
    for ticket in tickets:
        stage.wait(ticket, 9.0)
        stage.release(ticket)
    assert paused == [2.0, 4.0]
    now[0] = 5.5
    stage.submit(step(), None, nothing)
    assert stage.idle_s == 1.5


def test_feeding_from_an_unknown_ticket_is_refused(stage: NullStage) -> None:
    with pytest.raises(ValueError, match="fed from"):
        stage.submit(step(-1, Ticket(9)), None, select_rows(np.zeros(1, np.int32)))


def test_feeding_from_a_row_that_the_ticket_lacks_is_refused(stage: NullStage) -> None:
    ticket = stage.submit(step(), None, select_rows(np.zeros(1, np.int32)))
    with pytest.raises(ValueError, match="more rows than the 1"):
        stage.submit(step(-2, ticket, 1), None, select_rows(np.zeros(1, np.int32)))


def test_masked_rows_need_their_masks(stage: NullStage) -> None:
    selection = select_rows(np.zeros(1, np.int32))
    selection.masked[0] = True
    ticket = stage.submit(step(), None, selection)
    with pytest.raises(ValueError, match="before apply_masks"):
        stage.wait(ticket, 0.0)
    with pytest.raises(ValueError, match="2 masks for 1"):
        stage.apply_masks(ticket, np.zeros((2, 5), np.uint32))
    stage.apply_masks(ticket, np.zeros((1, 5), np.uint32))
    stage.wait(ticket, 0.0)


def test_fused_instructions_give_the_same_tokens() -> None:
    patterns = (("rope", "rope", "attention"), ("add", "norm"))
    answers, ran = [], []
    for device in (NullDevice(lambda: 0.0), NullDevice(lambda: 0.0, patterns=patterns)):
        core = make_core(device, depth=2, cuts=(2, 5))
        answers.append(run(core, submit(1, length=30)))
        stages = [stage for stage in core._pipeline._stages if isinstance(stage, NullStage)]
        ran.append(Counter(instruction.pattern for stage in stages for instruction in stage.ran))
    assert answers[0] == answers[1]
    steps = ran[0]["embed",]
    assert ran[1]["rope", "rope", "attention"] == ran[0]["attention",] == 4 * steps
    assert ran[1]["add", "norm"] == (8 - 2) * steps  # two of eight sums leave a stage
    assert ran[1]["add",] == 2 * steps


def test_only_taps_of_the_program_can_be_read() -> None:
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32", taps=(3,))
    parts = NullDevice(lambda: 0.0).load(program, RandomSource(), lambda _done, _total: None)
    stage = parts.stage({0: 4}, StageLimits(8, 2, 2))
    ticket = stage.submit(step(), None, select_rows(np.zeros(1, np.int32)))
    assert stage.tap(ticket, 3).host().shape == (1, program.hidden_size)
    with pytest.raises(ValueError, match="part 2 is no tap"):
        stage.tap(ticket, 2)


def test_a_step_against_the_contract_is_refused(stage: NullStage) -> None:
    with pytest.raises(ValueError, match="token_ids reach"):
        stage.submit(step(500), None, select_rows(np.zeros(1, np.int32)))


def drawn(**changes: Any) -> Selection:
    """Select the only row of a step, to be drawn from all tokens at temperature 1."""
    one = np.ones(1, np.uint64)
    table = np.array([[1.0, 1.0, np.inf, 1.0, -np.inf, -np.inf]])
    draws = Draws(np.full(1, SAMPLED, np.int8), table, one, one, one, np.ones(1, np.bool_))
    return msgspec.structs.replace(select_rows(np.zeros(1, np.int32)), **{"draws": draws, **changes})


def bias(token: int, value: float) -> LateEdits:
    one = np.ones(1, np.float32)
    return LateEdits(np.array([0, 1], np.int32), np.full(1, token, np.int32), one, value * one)


def token_of(stage: NullStage, ticket: Ticket) -> int:
    tokens = stage.wait(ticket, 9.0).tokens
    assert tokens is not None
    return int(tokens[0])


def test_what_a_device_does_not_claim_is_refused(stage: NullStage) -> None:
    for selection in (drawn(), drawn(draws=None, late=np.zeros(1, np.bool_))):
        with pytest.raises(ValueError, match="does not claim"):
            stage.submit(step(), None, selection)


def test_late_edits_change_what_is_drawn_and_what_the_rows_are(make_stage: MakeStage) -> None:
    stage = make_stage(NullDevice(lambda: 0.0, draws=True))
    ticket = stage.submit(step(), None, drawn(late=np.ones(1, np.bool_)))
    with pytest.raises(ValueError, match="before apply_edits"):
        stage.wait(ticket, 0.0)
    stage.apply_edits(ticket, bias(77, 300.0))
    assert token_of(stage, ticket) == 77
    zero = np.zeros(1, np.int32)
    assert stage.rows(ticket, zero)[0, 77] - stage.raw_rows(ticket, zero)[0, 77] == 300.0


def test_edits_of_the_selection_and_masks_change_what_is_drawn(make_stage: MakeStage) -> None:
    stage = make_stage(NullDevice(lambda: 0.0, draws=True))
    edits = bias(50, 300.0)
    edited = drawn(
        edit_offsets=edits.offsets, edit_ids=edits.ids, edit_factors=edits.factors, edit_biases=edits.biases
    )
    assert token_of(stage, stage.submit(step(), None, edited)) == 50
    masked = stage.submit(step(), None, msgspec.structs.replace(edited, masked=np.ones(1, np.bool_)))
    stage.apply_masks(masked, np.array([[0, 0, 1 << 5, 0, 0]], np.uint32))
    assert token_of(stage, masked) == 64 + 5


def test_edits_come_before_masks_and_each_once(make_stage: MakeStage) -> None:
    stage = make_stage(NullDevice(lambda: 0.0, draws=True))
    both = np.ones(1, np.bool_)
    ticket = stage.submit(step(), None, drawn(late=both, masked=both))
    all_allowed = np.full((1, 5), 0xFFFFFFFF, np.uint32)
    with pytest.raises(ValueError, match="apply_masks is not expected"):
        stage.apply_masks(ticket, all_allowed)
    stage.apply_edits(ticket, bias(77, 300.0))
    with pytest.raises(ValueError, match="apply_edits is not expected"):
        stage.apply_edits(ticket, bias(77, 300.0))
    stage.apply_masks(ticket, all_allowed)
    assert token_of(stage, ticket) == 77


def test_masks_that_come_late_delay_the_step_and_those_that_it_feeds(make_stage: MakeStage) -> None:
    now = [0.0]
    paused: list[float] = []
    stage = make_stage(NullDevice(lambda: now[0], step_s=2.0, pause=paused.append, draws=True))
    first = stage.submit(step(), None, drawn(late=np.ones(1, np.bool_)))
    fed = stage.submit(step(-1, first, 1), None, drawn())
    with pytest.raises(ValueError, match="fed from a ticket that waits"):
        stage.wait(fed, 9.0)
    now[0] = 3.0
    stage.apply_edits(first, bias(77, 300.0))
    stage.wait(first, 9.0)
    stage.wait(fed, 9.0)
    assert paused == [2.0]
    assert stage.idle_s == 1.0


def test_a_released_step_without_its_masks_holds_up_no_other(make_stage: MakeStage) -> None:
    stage = make_stage(NullDevice(lambda: 0.0, draws=True))
    first = stage.submit(step(), None, drawn(masked=np.ones(1, np.bool_)))
    fed = stage.submit(step(-1, first, 1), None, drawn())
    stage.release(first)
    stage.wait(fed, 0.0)


def test_weights_pools_and_buffers_take_memory_until_they_are_closed() -> None:
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32")
    device, limits = NullDevice(lambda: 0.0, name="card", memory_bytes=1 << 20), StageLimits(8, 2, 2)
    assert device.info.memory_id == "card"
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    with_weights = device.free_bytes()
    assert (1 << 20) - with_weights == sum(weight.num_bytes for weight in program.weights)
    stage = weights.stage({0: 4}, limits)
    taken = 4 * weights.kv_bytes(0, "f16") + weights.step_bytes(limits)
    assert device.free_bytes() == with_weights - taken
    stage.close()
    stage.close()
    assert device.free_bytes() == with_weights
    with pytest.raises(MemoryBudgetError, match="do not fit"):
        weights.stage({0: 1 << 10}, limits)
    weights.close()
    assert device.free_bytes() == 1 << 20


def test_the_times_of_a_step_are_those_of_its_clock() -> None:
    clock = itertools.count(1.0)
    device = NullDevice(lambda: next(clock), step_s=4.0)
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32")
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    stage = weights.stage({0: 4}, StageLimits(8, 2, 2, spans=True))
    first, second = (stage.submit(step(position=place), None, select_rows(ONE)) for place in range(2))
    stage.wait(first, 60.0)
    assert stage.spans(first) == (Span("launch", "submit", 1.0, 2.0), Span("device", "layers", 1.0, 5.0))
    assert stage.spans(second) == (Span("launch", "submit", 3.0, 4.0), Span("device", "layers", 5.0, 9.0))


def test_streamed_weights_are_copied_while_the_layers_run() -> None:
    device = NullDevice(lambda: 1.0, step_s=4.0)
    plan = TinyModel(window=None).plan()
    program = lower(plan, 0, 10, format_of=lambda _kind, _ref: "f32", streamed=(1, 2))
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    stage = weights.stage({0: 4}, StageLimits(8, 2, 2, spans=True))
    ticket = stage.submit(step(), None, select_rows(ONE))
    stage.wait(ticket, 60.0)
    _, copied, computed = stage.spans(ticket)
    assert copied == Span("weights", "streamed parts", 1.0, 5.0)
    assert computed == Span("device", "layers", 1.0, 5.0)
