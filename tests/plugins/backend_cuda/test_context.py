"""Addresses that launches get."""

from __future__ import annotations

from llmd.api import StageLimits
from llmd_backend_cuda.context import Context, StepArgs
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, lowered
from tests.plugins.backend_cuda.bench import PLAN

pytestmark = NEEDS_COMPILER


def test_slots_and_vectors_have_addresses_and_what_is_missing_is_null() -> None:
    card = SimulatedCard()
    slots, vector = [card.allocate(16), card.allocate(16)], card.allocate(4)
    context = Context(card, lowered(PLAN), StageLimits(1, 1, 1), StepArgs(), slots, [None, vector], ())
    assert [context.slot(0), context.slot(1)] == [slot.pointer for slot in slots]
    assert [context.vector(index) for index in (None, 0, 1)] == [0, 0, vector.pointer]
