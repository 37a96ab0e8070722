"""The arrays of a ticket fit the largest step of a stage."""

from __future__ import annotations

from llmd.api import HIDDEN, Head, StageLimits, TensorRef
from llmd_backend_cpu.tickets import TicketArrays
from tests.plugins.backend_cpu.workbench import head_program, linear, middle_program

LIMITS = StageLimits(max_rows=7, max_sequences=2, max_outputs=3, num_candidates=64)


def test_a_stage_with_the_head_keeps_logits_and_candidates() -> None:
    program = head_program(Head(HIDDEN, TensorRef("w", (50, 8))), 8, 50)
    arrays = TicketArrays.allocate(program, LIMITS)
    assert arrays.raw.shape == arrays.edited.shape == (3, 50)
    assert arrays.hidden.size == 0
    result = arrays.result(2, 50, 5)
    assert result.ids.shape == result.edited.shape == result.raw.shape == (2, 50)
    assert result.top_ids.shape == (2, 5)
    assert result.target_raw.shape == (2,)


def test_a_stage_without_the_head_keeps_hidden_states() -> None:
    arrays = TicketArrays.allocate(middle_program([linear(8)], 8, {}, None), LIMITS)
    assert arrays.hidden.shape == (7, 8)
    assert arrays.raw.size == arrays.ids.size == 0


def test_the_bytes_of_all_arrays_are_counted() -> None:
    arrays = TicketArrays.allocate(middle_program([linear(8)], 8, {}, None), LIMITS)
    assert arrays.num_bytes == 4 * 7 * 8
