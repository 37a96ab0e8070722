from __future__ import annotations

import pytest

from llmd.api.errors import MemoryBudgetError
from llmd.api.step import BLOCK_LEN
from llmd.profiling import timed_model
from llmd.profiling.plans import attention_plan, feed_forward_plan
from llmd.profiling.timed_model import TimedModel, seconds_in_turns
from llmd.testing.null_device import NullDevice, NullStage
from tests.daemon.profiling.simulated import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timed_model, "time", clock)
    return clock


def stage_of(model: TimedModel) -> NullStage:
    stage = model._stage
    assert isinstance(stage, NullStage)
    return stage


def test_the_median_of_steps_within_the_budget_is_taken(clock: Clock) -> None:
    times = iter([9.0, 1.0, 5.0, 2.0, 3.0])
    device = NullDevice(clock, step_s=lambda _program, _step: next(times), pause=clock.pause)
    with TimedModel(device, feed_forward_plan(8, 8, 1), "f32", 4) as model:
        assert model.step_seconds(4, 20.0) == 2.5  # of 1, 5, 2 and 3: the first prepares


def test_models_take_turns(clock: Clock) -> None:
    ran: list[str] = []

    def device(name: str, seconds: float) -> NullDevice:
        def step_s(_program: object, _step: object) -> float:
            ran.append(name)
            return seconds

        return NullDevice(clock, step_s=step_s, pause=clock.pause)

    plan = feed_forward_plan(8, 8, 1)
    with TimedModel(device("a", 1.0), plan, "f32", 2) as a, TimedModel(device("b", 3.0), plan, "f32", 2) as b:
        assert seconds_in_turns([a, b], 2, 9.0) == [1.0, 3.0]
    assert ran == ["a", "b"] * 3


def test_one_step_is_timed_if_it_exceeds_the_budget(clock: Clock) -> None:
    device = NullDevice(clock, step_s=7.0, pause=clock.pause)
    with TimedModel(device, feed_forward_plan(8, 8, 1), "f32", 1) as model:
        assert model.step_seconds(1, 0.0) == 7.0
        assert len(stage_of(model).submitted) == 2


def test_rows_begin_at_a_position() -> None:
    device = NullDevice(lambda: 0.0)
    with TimedModel(device, attention_plan(8, 2, 1, 1, context_len=100), "f32", 10) as model:
        model.step_seconds(10, 0.0, position=90)
        assert stage_of(model).submitted[-1] == (10, (99,))


def test_the_blocks_of_a_context_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    device = NullDevice(lambda: 0.0)
    written: set[int] = set()
    submit = NullStage.submit

    def noted(stage: NullStage, step, hidden, selection):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        (table,) = step.block_tables
        written.update(table[0][step.positions // BLOCK_LEN].tolist())
        return submit(stage, step, hidden, selection)

    monkeypatch.setattr(NullStage, "submit", noted)
    with TimedModel(
        device, attention_plan(8, 2, 1, 1, context_len=10 * BLOCK_LEN), "f32", 3 * BLOCK_LEN
    ) as model:
        model.fill(3 * BLOCK_LEN, 6 * BLOCK_LEN)
        assert written == set(range(6))
        model.fill(3 * BLOCK_LEN, 10 * BLOCK_LEN)
    assert written == set(range(10))


def test_some_parts_take_and_give_hidden_states(clock: Clock) -> None:
    device = NullDevice(clock, step_s=3.0, pause=clock.pause)
    with TimedModel(device, feed_forward_plan(8, 8, 2), "f32", 4, parts=(1, 3)) as model:
        assert not model.program.has_head
        assert model.step_seconds(4, 0.0) == 3.0, "until its hidden states are in main memory"


def test_memory_is_free_after_use_and_after_a_failure() -> None:
    device = NullDevice(lambda: 0.0, memory_bytes=1 << 20)
    with TimedModel(device, feed_forward_plan(8, 8, 1), "f32", 1):
        assert device.held_bytes > 0
    assert device.held_bytes == 0
    with pytest.raises(MemoryBudgetError):
        TimedModel(device, attention_plan(64, 8, 8, 4, context_len=1 << 20), "f32", 1)
    assert device.held_bytes == 0
