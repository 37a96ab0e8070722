"""Stages that hand hidden states on, and the hidden states inside a stage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from llmd.api import DeviceLostError, Step
from llmd.api.step import Float32
from tests.cuda.simulated import NEEDS_COMPILER, HangingCard, SimulatedCard
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


def two_cards(*, is_peer: bool = True) -> tuple[Bench, Bench]:
    """Return the halves of the model on two cards, which run what is queued as late as they may."""
    first, second = (SimulatedCard(deferred=True, name=f"cuda:{index}") for index in (0, 1))
    second.is_peer = is_peer
    return Bench(first, 0, 2), Bench(second, 2)


def logits_of(first: Bench, second: Bench, step: Step) -> Float32:
    """Run a step whose hidden states go from card to card; the second one runs as early as it may."""
    ticket = first.stage.submit(step, None, None)
    last = second.stage.submit(step, first.stage.hidden(ticket), select(step.num_rows))
    second.card.synchronize()
    second.stage.wait(last, 60.0)
    rows = second.stage.raw_rows(last, np.arange(step.num_rows, dtype=np.int32))
    first.stage.release(ticket)
    second.stage.release(last)
    return rows


@pytest.mark.parametrize("is_peer", [True, False])
def test_hidden_states_go_from_card_to_card(bench: Bench, is_peer: bool) -> None:  # noqa: FBT001 - cases
    first, second = two_cards(is_peer=is_peer)
    for seed in range(4):  # each ticket of the first card is used twice
        step = one(5, seed=seed)
        np.testing.assert_array_equal(logits_of(first, second, step), bench.logits(step))


def test_a_missing_wait_for_the_first_card_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two_cards()
    monkeypatch.setattr(second.card, "wait_for", lambda _event: None)
    step = one(5)
    assert not np.array_equal(logits_of(first, second, step), bench.logits(step))


def test_submitting_to_the_second_card_does_not_wait_for_the_first() -> None:
    first, second = two_cards()
    step = one(5)
    hidden = first.stage.hidden(first.stage.submit(step, None, None))
    point = first.card.record()
    second.stage.submit(step, hidden, select(5))
    assert not point.wait(0.0)


def test_a_first_card_that_hangs_is_the_one_that_is_lost() -> None:
    cards = HangingCard(name="cuda:0"), HangingCard(name="cuda:1")
    first, second = Bench(cards[0], 0, 2), Bench(cards[1], 2)
    step = one(5)
    ticket = first.stage.submit(step, None, None)
    cards[0].hangs = True
    last = second.stage.submit(step, first.stage.hidden(ticket), select(5))
    assert cards[1].hangs, "its stream waits for the first card"
    with pytest.raises(DeviceLostError) as lost:
        second.stage.wait(last, 0.5)
    assert lost.value.devices == ("cuda:0",)
    second.stage.close()
