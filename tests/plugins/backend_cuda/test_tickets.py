"""The memory of a ticket fits the largest step of a stage."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import DeviceLostError, StageLimits
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.step_memory import StepMemory
from llmd_backend_cuda.tickets import Flight, HiddenRows, TicketMemory
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
    hidden = HiddenRows(card, rows, card.record())
    assert rows.tolist() == [3.0, 3.0]
    assert hidden.host().tolist() == [0.0, 0.0]


def test_hidden_rows_of_a_step_that_never_ends_are_lost() -> None:
    card = HangingCard()
    hidden = HiddenRows(card, card.pinned(8).view(np.float32), card.record())
    card.hangs = True
    with pytest.raises(DeviceLostError, match="a step did not finish within"):
        hidden.host()
