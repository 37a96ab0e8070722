"""Stages that hand hidden states on, and the hidden states inside a stage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_cuda.bench import FIRST, MODEL, PLAN, Bench, allowing, hidden_of, one

pytestmark = NEEDS_COMPILER


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_stages_in_a_row_give_the_same_bits_as_one(bench: Bench) -> None:
    card = SimulatedCard(deferred=True)
    cuts = (0, 2, 3, len(PLAN.parts))
    stages = [Bench(card, first, last) for first, last in itertools.pairwise(cuts)]
    step = one(7)
    hidden = None
    for part in stages[:-1]:
        ticket = part.stage.submit(step, hidden, None)
        hidden = part.stage.hidden(ticket)
    np.testing.assert_array_equal(stages[-1].logits(step, hidden), bench.logits(step))


def test_a_stage_without_the_head_has_hidden_states_and_no_candidates() -> None:
    stage = Bench(first=1, last=3).stage
    ticket = stage.submit(one(5), hidden_of(5), None)
    states = stage.hidden(ticket).host()
    assert states.shape == (5, MODEL.hidden)
    assert states.flags.c_contiguous
    for call in (
        lambda: stage.wait(ticket, 1.0),
        lambda: stage.rows(ticket, FIRST),
        lambda: stage.apply_masks(ticket, allowing()),
    ):
        with pytest.raises(ValueError, match="no candidates"):
            call()
    with pytest.raises(ValueError, match="part 2 is no tap"):
        stage.tap(ticket, 2)


def test_a_stage_with_the_head_has_no_hidden_states(bench: Bench) -> None:
    stage = bench.stage
    with pytest.raises(ValueError, match="no hidden states"):
        stage.hidden(stage.submit(one(1), None, select(1)))


def test_taps_are_the_hidden_states_after_their_parts(bench: Bench) -> None:
    tapped = Bench(taps=(0, 2))
    step = one(3)
    ticket = tapped.stage.submit(step, None, select(3, masked=[1]))
    with pytest.raises(ValueError, match="once all edits and masks are applied"):
        tapped.stage.tap(ticket, 0)
    tapped.stage.apply_masks(ticket, allowing(1))
    for part in (0, 2):
        before = Bench(last=part + 1)
        alone = before.stage.submit(step, None, None)
        expected = before.stage.hidden(alone).host()
        np.testing.assert_array_equal(tapped.stage.tap(ticket, part).host(), expected)
    with pytest.raises(ValueError, match="part 1 is no tap"):
        tapped.stage.tap(ticket, 1)
    np.testing.assert_array_equal(
        tapped.stage.raw_rows(ticket, np.arange(3, dtype=np.int32)), bench.logits(step)
    )
