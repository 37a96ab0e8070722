from __future__ import annotations

import pytest

from llmd.api.samplers import SamplingParams
from llmd.api.spans import Span
from llmd.benchmark import engine_loop
from llmd.benchmark.engine_loop import LoopCost, idle_share, measure_loop
from llmd.engine.steps.step_trace import TracedStep

STREAMS = 3
GREEDY, DRAWING = SamplingParams(0, 0.0), SamplingParams(0, 0.8)


class Ticking:
    """Replaces the module ``time``: each reading advances the clock; a quarter of all time is CPU time."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._now_s = 0.0

    def perf_counter(self) -> float:
        self._now_s += self._tick_s
        return self._now_s

    def thread_time(self) -> float:
        return self._now_s / 4

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds


def device_share(cost: LoopCost) -> float:
    """Return the share of the elapsed time in which the device computed or was idle."""
    assert cost.idle_share is not None
    return cost.tokens_per_s / STREAMS * cost.step_s * (1 + cost.idle_share)


@pytest.mark.parametrize("sampling", [GREEDY, DRAWING], ids=["greedy", "drawing"])
@pytest.mark.parametrize("step_s", [1e-6, 1e-3])
def test_a_device_that_waits_for_the_loop_stands_still_for_the_rest_of_the_time(
    monkeypatch: pytest.MonkeyPatch, sampling: SamplingParams, step_s: float
) -> None:
    monkeypatch.setattr(engine_loop, "time", Ticking(tick_s=1e-3))
    cost = measure_loop(STREAMS, sampling, step_s, 20)
    elapsed_s = STREAMS / cost.tokens_per_s
    assert elapsed_s > step_s
    assert cost.idle_share == pytest.approx(elapsed_s / step_s - 1, rel=1e-6)
    assert cost.loop_s == pytest.approx(elapsed_s / 4, rel=0.06)


def test_greedy_steps_follow_each_other_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_loop, "time", Ticking(tick_s=1e-5))
    cost = measure_loop(STREAMS, GREEDY, 2e-3, 20)
    assert cost.idle_share == 0
    assert cost.tokens_per_s == pytest.approx(STREAMS / 2e-3, rel=0.01)


def test_the_device_stands_still_while_a_loop_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_loop, "time", Ticking(tick_s=1e-4))
    cost = measure_loop(STREAMS, DRAWING, 2e-3, 20)
    assert cost.idle_share is not None
    assert 0.05 < cost.idle_share < 0.3
    assert device_share(cost) == pytest.approx(1.0, rel=0.01)


def test_tokens_come_no_faster_than_a_device_of_real_time_makes_them() -> None:
    cost = measure_loop(2, GREEDY, 2e-3, 20)
    assert 0 < cost.tokens_per_s <= 2 / 2e-3 * 1.1


def step_of(*stages: tuple[Span, ...]) -> TracedStep:
    return TracedStep(1, 0.0, 9.0, 1, 1, (), stages)


def test_a_device_is_idle_while_it_does_not_compute() -> None:
    first, second = Span("device", "layers", 1.0, 2.0), Span("device", "layers", 4.0, 5.0)
    copy = Span("copy", "results", 2.0, 4.0)
    assert idle_share([step_of((first, copy)), step_of((second,))]) == pytest.approx(0.5)
    assert idle_share([step_of((first,), ()), step_of((second,), ())]) == pytest.approx(0.5)
    busy = Span("device", "layers", 2.0, 3.0)
    both = [step_of((first,), (first,)), step_of((second,), (busy,))]
    assert idle_share(both) == pytest.approx(0.25), "the mean of both stages"
    assert idle_share([step_of(()), step_of(())]) is None
    assert idle_share([]) is None
