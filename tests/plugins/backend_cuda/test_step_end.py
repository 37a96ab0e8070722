"""Waiting for a step that follows a step of another card."""

from __future__ import annotations

import pytest

from llmd.api import DeviceLostError
from llmd_backend_cuda.step_end import StepEnd
from tests.cuda.failing_card import FailingCard
from tests.cuda.simulated import NEEDS_COMPILER, HangingCard

pytestmark = NEEDS_COMPILER


def chain() -> tuple[HangingCard, HangingCard, StepEnd]:
    """Return two cards, and the end of a step of the second that follows one of the first."""
    first, second = HangingCard(name="cuda:0"), HangingCard(name="cuda:1")
    before = StepEnd(first, first.record())
    return first, second, StepEnd(second, second.record(), before)


@pytest.mark.parametrize(("hanging", "named"), [((0, 1), "cuda:0"), ((0,), "cuda:0"), ((1,), "cuda:1")])
def test_the_first_card_that_hangs_is_named(hanging: tuple[int, ...], named: str) -> None:
    *cards, end = chain()
    end.reach(0.5)
    for number in hanging:
        cards[number].hangs = True
    with pytest.raises(DeviceLostError, match=r"did not finish within 0.5 s") as lost:
        end.reach(0.5)
    assert lost.value.devices == (named,)


def test_asking_does_not_wait_and_finds_a_lost_card() -> None:
    first, second = FailingCard(0, deferred=True), FailingCard(1, deferred=True)
    end = StepEnd(second, second.record(), StepEnd(first, first.record()))
    end.check()
    assert not end.event.wait(0.0)
    first.fail(700, "wait")
    with pytest.raises(DeviceLostError) as lost:
        end.check()
    assert lost.value.devices == ("cuda:0",)


def test_a_card_that_never_ends_its_step_is_lost_when_its_stage_closes() -> None:
    noted: list[str] = []

    class Noting(HangingCard):
        def lost(self, what: str) -> DeviceLostError:
            noted.append(what)
            return super().lost(what)

    card = Noting(name="cuda:1")
    end = StepEnd(card, card.record())
    end.settle(0.5)
    assert noted == []
    card.hangs = True
    end.settle(0.5)
    assert noted == ["it waits for a card that is lost"]
