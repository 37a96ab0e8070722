from __future__ import annotations

import numpy as np
import pytest

from llmd.api import StageLimits, Step
from llmd.api.features import STREAMS
from llmd.models.lowering import lower
from llmd.placement.work import Span, Weights, Work
from llmd.profiling.plans import feed_forward_plan
from llmd.testing.selections import plain_selection
from llmd.testing.sources import RandomSource
from llmd.testing.throttled_device import Speed, ThrottledDevice, step_seconds
from tests.daemon.profiling.simulated import Clock

SPEED = Speed(bytes_per_s=100.0, flops=1000.0, attention_flops=50.0)


def step(*sequences: tuple[int, int]) -> Step:
    """Return a step with the rows of some sequences, each from a position up to one after it."""
    positions = np.concatenate([np.arange(*one, dtype=np.int32) for one in sequences])
    return Step(
        token_ids=np.zeros(len(positions), np.int32),
        positions=positions,
        row_offsets=np.cumsum([0, *(last - first for first, last in sequences)], dtype=np.int32),
        block_tables=(),
        copies=np.zeros((0, 3), np.int32),
    )


@pytest.mark.parametrize(("rows", "seconds"), [(1, 2.0), (10, 2.0), (20, 4.0), (100, 20.0)])
def test_products_take_as_long_as_reading_or_computing(rows: int, seconds: float) -> None:
    work = Work(0, {"f16": Weights(200, 100)}, {}, (), 0)
    assert step_seconds(SPEED, work, step((0, rows))) == seconds


def test_the_head_has_one_row_of_each_sequence() -> None:
    work = Work(0, {}, {"f16": Weights(200, 1000)}, (), 0)
    assert step_seconds(SPEED, work, step((0, 500))) == 2.0
    assert step_seconds(SPEED, work, step((0, 5), (0, 1), (3, 4))) == 6.0


def test_attention_reads_keys_once_and_computes_for_each_row() -> None:
    reading = Work(0, {}, {}, (Span(None, 10, 1),), 0)
    assert step_seconds(SPEED, reading, step((9, 10))) == 1.0
    computing = Work(0, {}, {}, (Span(None, 10, 100),), 0)
    assert step_seconds(SPEED, computing, step((8, 10))) == (9 + 10) * 100 / 50
    windowed = Work(0, {}, {}, (Span(4, 10, 100),), 0)
    assert step_seconds(SPEED, windowed, step((8, 10), (0, 2))) == (4 + 4 + 1 + 2) * 100 / 50


def test_parts_and_steps_take_time_and_states_are_read() -> None:
    speed = Speed(100.0, 1000.0, 50.0, step_s=7.0, part_s=0.5)
    assert step_seconds(speed, Work(3, {}, {}, (), 50), step((0, 4), (0, 1))) == 7.0 + 1.5 + 2 * 0.5


def test_stages_of_a_device_compute_one_after_the_other_and_hidden_states_are_copied() -> None:
    clock = Clock()
    speed = Speed(1e12, 1e15, 1e15, step_s=2.0, copy_bytes_per_s=64.0)
    device = ThrottledDevice(clock, clock.pause, speed)
    plan, limits = feed_forward_plan(16, 16, 2), StageLimits(2, 1, 1)
    programs = [lower(plan, *parts, format_of=lambda _kind, _ref: "f32") for parts in ((0, 2), (2, 4))]
    stages = [
        device.load(program, RandomSource(), lambda _done, _total: None).stage({}, limits)
        for program in programs
    ]
    one = step((0, 1))
    first = stages[0].submit(one, None, None)
    hidden = stages[0].hidden(first)
    last = stages[1].submit(one, hidden, plain_selection([0]))
    # A second step waits for the last stage of the first one.
    second = stages[0].submit(one, None, None)
    stages[1].wait(last, 100.0)
    assert clock.now_s == pytest.approx(2 * (2.0 + 1.0))
    stages[0].hidden(second).host()
    assert clock.now_s == pytest.approx(3 * (2.0 + 1.0))


def test_it_says_how_fast_it_reads_and_streams_nothing() -> None:
    device = ThrottledDevice(lambda: 0.0, lambda _s: None, SPEED)
    assert device.read_rate(1.0) == 100.0
    assert STREAMS not in device.info.features
