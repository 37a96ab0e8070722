"""The memory of a ticket fits the largest step of a stage."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import DeviceLostError, StageLimits
from llmd_backend_cuda.runtime import Memory
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.step_end import StepEnd
from llmd_backend_cuda.step_marks import StepMarks
from llmd_backend_cuda.step_memory import StepMemory
from llmd_backend_cuda.tickets import CardRows, Flight, HiddenRows, TicketMemory
from tests.cuda.failing_card import FailingCard
from tests.cuda.simulated import NEEDS_COMPILER, HangingCard, SimulatedCard, lowered
from tests.plugins.backend_cuda.bench import MODEL, PLAN

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=7, max_sequences=2, max_outputs=3)


def allocate(first: int, last: int | None = None, taps: tuple[int, ...] = ()) -> TicketMemory:
    card, program = SimulatedCard(), lowered(PLAN, first, last, taps=taps)
    step = StepMemory(card, program, LIMITS, attention_shapes(program))
    return TicketMemory.allocate(card, program, LIMITS, step)


def test_a_stage_with_the_head_keeps_outputs() -> None:
    memory = allocate(3)
    assert memory.outputs is not None
    assert memory.outputs.raw.num_bytes >= 4 * 3 * MODEL.vocab
    assert memory.taps == {}
    assert memory.end is None


def test_a_stage_without_the_head_keeps_hidden_states() -> None:
    memory = allocate(1, 3)
    assert memory.outputs is None
    assert memory.hidden.shape == (7, MODEL.hidden)
    assert memory.hidden.dtype == np.float32


def test_each_tap_has_its_own_rows() -> None:
    memory = allocate(0, 4, taps=(0, 2))
    assert memory.taps.keys() == {0, 2}
    assert all(rows.shape == (7, MODEL.hidden) for rows in memory.taps.values())
    memory.taps[0][:] = 1.0
    memory.taps[2][:] = 2.0
    assert memory.taps[0].max() == 1.0


def test_copies_fit_behind_their_number() -> None:
    copies = allocate(3).copies
    assert copies.dtype == np.int32
    assert copies.size % 3 == 1


def test_memory_that_is_kept_for_a_step_goes_with_its_flight() -> None:
    card = SimulatedCard()
    flight = Flight(0, 3, None)
    assert flight.end is None
    flight.extra.append(card.allocate(1000))
    assert card.used_bytes == 1000
    del flight
    assert card.used_bytes == 0


def test_hidden_rows_are_read_once_the_step_has_ended() -> None:
    card = HangingCard(deferred=True)
    memory = card.allocate(8)
    card.fill_zero(memory)
    rows = card.pinned(8).view(np.float32)
    rows[:] = 3.0
    card.download(rows, memory, 0)
    hidden = HiddenRows(rows, StepEnd(card, card.record()))
    assert rows.tolist() == [3.0, 3.0]
    assert hidden.host().tolist() == [0.0, 0.0]


def handing(card: SimulatedCard, value: float) -> tuple[TicketMemory, CardRows]:
    """Return a ticket whose stage hands on two rows with a value, when its stream gets there."""
    program = lowered(PLAN, 1, 3)
    step = StepMemory(card, program, LIMITS, attention_shapes(program))
    ticket = TicketMemory.allocate(card, program, LIMITS, step)
    return ticket, hand_on(card, ticket, value)


def hand_on(card: SimulatedCard, ticket: TicketMemory, value: float) -> CardRows:
    slot = card.allocate(4 * 7 * MODEL.hidden)
    card.upload(slot, 0, np.full(7 * MODEL.hidden, value, np.float32))
    ticket.hand_on(card, slot, 2)
    ticket.end = StepEnd(card, card.record())
    return CardRows(ticket, 2, ticket.end)


def taken(card: SimulatedCard, memory: Memory) -> list[float]:
    values = np.empty(2 * MODEL.hidden, np.float32)
    card.download(values, memory, 0)
    card.synchronize()
    return sorted(set(values.tolist()))


@pytest.mark.parametrize("is_peer", [True, False])
def test_another_card_takes_hidden_states_without_the_host(is_peer: bool) -> None:  # noqa: FBT001 - cases
    """Only peers take later ones from the memory of the card; the first ones are on the host already."""
    first, second = (SimulatedCard(deferred=True, name=name) for name in ("cuda:0", "cuda:1"))
    second.is_peer = is_peer
    target = second.allocate(4 * 2 * MODEL.hidden)
    ticket, rows = handing(first, 1.0)
    end = rows.copy_to(second, target, StepMarks(None))
    assert not end.event.wait(0.0), "nobody has waited for the first card"
    assert taken(second, target) == [1.0]
    ticket.reuse()
    later = hand_on(first, ticket, 2.0)
    assert ticket.is_downloaded is not is_peer
    later.copy_to(second, target, StepMarks(None))
    assert taken(second, target) == [2.0]
    assert set(later.host().ravel().tolist()) == {2.0}, "the host can read them, too"


def test_a_ticket_is_used_again_once_the_other_card_has_its_rows() -> None:
    first, second = (SimulatedCard(deferred=True, name=name) for name in ("cuda:0", "cuda:1"))
    target = second.allocate(4 * 2 * MODEL.hidden)
    ticket, rows = handing(first, 1.0)
    for value in (2.0, 3.0):
        rows.copy_to(second, target, StepMarks(None))
        ticket.reuse()  # the step is released before the second card has run
        rows = hand_on(first, ticket, value)
        first.synchronize()
        assert taken(second, target) == [value - 1.0]
    assert not ticket.is_downloaded


def test_rows_of_a_lost_card_are_refused_by_its_name() -> None:
    first, second = FailingCard(0), FailingCard(1)
    _, rows = handing(first, 1.0)
    first.fail(700, "wait")
    with pytest.raises(DeviceLostError) as lost:
        rows.copy_to(second, second.allocate(4 * 2 * MODEL.hidden), StepMarks(None))
    assert lost.value.devices == ("cuda:0",)


def test_a_ticket_that_shares_nothing_is_not_waited_for_at_the_end() -> None:
    card = HangingCard()
    ticket, _ = handing(card, 1.0)
    card.hangs = True
    ticket.settle()  # would name a lost card
