"""Design sections 5 and 6 tried on null devices:
two stages, two tickets in flight, a sliding-window group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from llmd.api import BLOCK_LEN, DeviceError, HostHidden, Selection, Stage, StageLimits, Step, Ticket
from llmd.engine.steps.batch import select_rows
from llmd.models.lowering import lower
from llmd.pager.pager import Pager
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource

WINDOW = 20
PLAN = TinyModel(window=WINDOW).plan()
LIMITS = StageLimits(max_rows=40, max_sequences=2, max_outputs=2)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_stages(device: NullDevice) -> list[NullStage]:
    cut = PLAN.layer_parts(0, 2)[1]
    stages = []
    for first, last in ((0, cut), (cut, len(PLAN.parts))):
        program = lower(PLAN, first, last, format_of=lambda _kind, _ref: "f32")
        parts = device.load(program, RandomSource(), lambda _done, _total: None)
        stages.append(parts.stage({0: 16, 1: 16}, LIMITS))
    return stages


def make_step(pager: Pager, tokens: list[int]) -> Step:
    assert pager.prepare(1, len(tokens))
    start = pager.length(1)
    return Step(
        np.array(tokens, np.int32),
        np.arange(start, start + len(tokens), dtype=np.int32),
        np.array([0, len(tokens)], np.int32),
        pager.tables([1]),
        np.zeros((0, 3), np.int32),
    )


def last_row(step: Step) -> Selection:
    return select_rows(np.array([step.num_rows - 1], np.int32))


def submit(stages: Sequence[Stage], step: Step) -> list[Ticket]:
    first = stages[0].submit(step, None, None)
    return [first, stages[1].submit(step, stages[0].hidden(first), last_row(step))]


def make_pager() -> Pager:
    """A pager with sequence 1."""
    pager = Pager(PLAN.groups, (16, 16), max_sequences=2, max_len=256, chunk_len=40)
    assert pager.open(1, (), None) == 0
    return pager


def test_two_tickets_are_in_flight_on_each_stage() -> None:
    clock = Clock()
    stages = make_stages(NullDevice(clock, step_s=1.0))
    pager = make_pager()

    prefill = submit(stages, make_step(pager, [3] * 30))
    pager.advance(1, 30)
    decode = submit(stages, make_step(pager, [4]))
    assert stages[1].most_in_flight == 2

    clock.now = 3.0  # the second stage begins when the first has ended
    for tickets in (prefill, decode):
        assert stages[1].wait(tickets[1], 0.0).ids.shape == (1, 64)
        for stage, ticket in zip(stages, tickets, strict=True):
            stage.release(ticket)
    assert stages[1].submitted == [(30, (29,)), (1, (30,))]


def test_a_third_ticket_is_refused_until_one_is_released() -> None:
    stages = make_stages(NullDevice(Clock()))
    pager = make_pager()
    tickets = []
    for _ in range(2):
        tickets.append(submit(stages, make_step(pager, [1])))
        pager.advance(1, 1)
    with pytest.raises(DeviceError, match="all 2 tickets"):
        submit(stages, make_step(pager, [1]))
    stages[0].release(tickets[0][0])
    stages[1].release(tickets[0][1])
    submit(stages, make_step(pager, [1]))


def test_window_blocks_are_given_back_while_full_blocks_stay() -> None:
    stages = make_stages(NullDevice(Clock()))
    pager = make_pager()
    for _ in range(5):
        step = make_step(pager, [1] * 40)
        submit(stages, step)
        pager.advance(1, 40)
        stages = make_stages(NullDevice(Clock()))
        pager.check_integrity()
    full, window = (table[0] for table in pager.tables([1]))
    first_needed = (200 - WINDOW + 1) // BLOCK_LEN
    assert (full[:13] >= 0).all()
    assert (window[:first_needed] == -1).all()
    assert (window[first_needed:13] >= 0).all()


def test_a_step_that_fails_half_way_leaves_the_length_unchanged() -> None:
    stages = make_stages(NullDevice(Clock()))
    pager = make_pager()
    step = make_step(pager, [1] * 5)
    stages[0].submit(step, None, None)
    with pytest.raises(ValueError, match="hidden rows"):
        stages[1].submit(step, HostHidden(np.zeros((3, PLAN.hidden_size), np.float32)), last_row(step))
    assert pager.length(1) == 0
    pager.check_integrity()


def test_a_step_that_takes_too_long_is_an_error() -> None:
    stages = make_stages(NullDevice(Clock(), step_s=5.0))
    pager = make_pager()
    tickets = submit(stages, make_step(pager, [1]))
    with pytest.raises(DeviceError, match="did not finish within 1 s"):
        stages[1].wait(tickets[1], 1.0)
