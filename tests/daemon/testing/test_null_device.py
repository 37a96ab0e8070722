from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from llmd.api import StageLimits, Step, Ticket
from llmd.engine.batch import select_rows
from llmd.models.lowering import lower
from llmd.testing.null_device import STRIDE, NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.serving.cores import make_core, run, submit

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
