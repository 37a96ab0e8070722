from __future__ import annotations

import pytest

from llmd.api.messages import FromEngine, Loading
from llmd.api.reports import Blocks, Report
from llmd.api.results import Embedded, Output
from llmd.server.engines.hang_detector import LONGEST_S, STEP_FACTOR, HangDetector, HangLimits

PROBE_S, KILL_S = 15.0, 60.0
LIMITS = HangLimits(PROBE_S, KILL_S)
STEP_S = 9.0
LIMIT_S = STEP_FACTOR * STEP_S


def report(*, steps: int = 9, running: int = 1, waiting: int = 0, step_s: float | None = STEP_S) -> Report:
    return Report(steps, running, waiting, 0, 0, 0, 0, 0.0, 0.0, 0, 0, step_s=step_s)


class Engine:
    """An engine that uses ``share`` of a processor, and answers each look with ``answer``."""

    def __init__(self, limits: HangLimits = LIMITS) -> None:
        self.detector = HangDetector(limits)
        self.used_s = 5.0
        self.now = 0.0

    def hangs_after(self, share: float, answer: FromEngine | None = None) -> float | None:
        """Return for how long it has made no progress when it counts as hung; None: it never does."""
        for _ in range(1000):
            self.used_s += share * PROBE_S
            if self.detector.look(self.used_s):
                return self.detector.stalled_s
            if answer is not None:
                self.detector.heard(answer)
        return None


@pytest.fixture
def engine() -> Engine:
    """It has measured its steps."""
    engine = Engine()
    engine.detector.heard(report())
    engine.detector.look(engine.used_s)
    engine.detector.heard(Output(()))
    return engine


def test_an_engine_that_neither_sends_nor_computes_hangs(engine: Engine) -> None:
    assert engine.hangs_after(0.0) == KILL_S
    engine.detector.heard(Output(()))
    assert engine.hangs_after(0.001) == KILL_S  # a tick or two is no computation


def test_an_engine_in_an_endless_loop_hangs(engine: Engine) -> None:
    assert engine.hangs_after(1.0) == LIMIT_S


def test_a_loop_that_answers_but_ends_no_step_hangs(engine: Engine) -> None:
    assert engine.hangs_after(1.0, report()) == LIMIT_S
    engine.detector.heard(Output(()))
    assert engine.hangs_after(1.0, report(running=0, waiting=1)) == LIMIT_S
    engine.detector.heard(Output(()))
    assert engine.hangs_after(1.0, Blocks(())) == LIMIT_S


def test_answers_of_an_engine_that_has_nothing_to_do_are_progress(engine: Engine) -> None:
    assert engine.hangs_after(0.0, report(running=0)) is None


def test_steps_without_tokens_are_progress(engine: Engine) -> None:
    for steps in range(1000):
        engine.used_s += PROBE_S
        assert not engine.detector.look(engine.used_s)
        engine.detector.heard(report(steps=steps))


def test_processor_time_counts_and_not_that_of_the_clock(engine: Engine) -> None:
    assert engine.hangs_after(0.5) == 2 * LIMIT_S  # on a busy machine
    engine.detector.heard(Output(()))
    assert engine.hangs_after(8.0) == LIMIT_S  # with many threads


def test_an_engine_that_computes_little_and_ends_no_step_hangs_at_last(engine: Engine) -> None:
    assert engine.hangs_after(0.01) == LONGEST_S


def test_a_first_step_may_take_long() -> None:
    assert Engine().hangs_after(1.0) == LONGEST_S


@pytest.mark.parametrize("result", [Output((), step_s=STEP_S), Embedded((), step_s=STEP_S)])
def test_the_first_result_already_says_how_long_steps_take(result: FromEngine) -> None:
    engine = Engine()
    engine.detector.look(engine.used_s)
    engine.detector.heard(result)
    engine.detector.heard(Output(()))  # it has not changed
    assert engine.hangs_after(1.0) == LIMIT_S


def test_steps_after_a_load_are_not_compared_with_those_before(engine: Engine) -> None:
    engine.detector.heard(Loading("weights", 1, 2))
    assert engine.hangs_after(1.0) == LONGEST_S


def test_short_steps_do_not_lower_the_limit(engine: Engine) -> None:
    engine.detector.heard(report(steps=10, step_s=0.001))
    assert engine.hangs_after(1.0) == KILL_S


def test_without_a_limit_the_silence_is_measured_and_nothing_hangs() -> None:
    engine = Engine(HangLimits(PROBE_S))
    assert engine.hangs_after(0.0) is None
    assert engine.detector.silent_s == 1000 * PROBE_S
    engine.detector.heard(Output(()))
    assert engine.detector.silent_s == 0.0


def test_where_the_system_does_not_say_what_it_computes_only_time_counts() -> None:
    detector = HangDetector(LIMITS)
    looks = 1
    while not detector.look(None):
        looks += 1
        assert detector.silent_s == 0.0
    assert looks * PROBE_S == LONGEST_S
