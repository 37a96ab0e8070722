from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError, Draws, HostHidden, LateEdits, Selection, Step, Ticket
from llmd.api.draws import SAMPLED
from llmd.builtin.reference.stage import ReferenceStage
from llmd.engine.steps.batch import select_rows

MakeStage = Callable[..., ReferenceStage]


def make_step(
    tokens: list[int], start: int = 0, feed: Ticket | None = None, copies: list[list[int]] | None = None
) -> Step:
    table = np.array([[1, 2]], np.int32)
    return Step(
        np.array(tokens, np.int32),
        np.arange(start, start + len(tokens), dtype=np.int32),
        np.array([0, len(tokens)], np.int32),
        (table, table),
        np.array(copies or [], np.int32).reshape(-1, 3),
        feed,
    )


def last(tokens: int) -> Selection:
    return select_rows(np.array([tokens - 1], np.int32))


def test_a_step_can_be_fed_with_the_token_of_a_ticket(make_stage: MakeStage) -> None:
    stage = make_stage()
    first = stage.submit(make_step([5, 6, 7]), None, last(3))
    token = int(stage.wait(first, 1.0).ids[0, 0])
    fed = stage.submit(make_step([-1], 3, feed=first), None, last(1))
    other = make_stage()
    other.release(other.submit(make_step([5, 6, 7]), None, last(3)))
    explicit = other.submit(make_step([token], 3), None, last(1))
    assert np.array_equal(stage.wait(fed, 1.0).raw, other.wait(explicit, 1.0).raw)


def test_a_step_is_fed_with_the_token_that_was_drawn_after_late_edits(make_stage: MakeStage) -> None:
    stage = make_stage()
    one = np.ones(1, np.uint64)
    table = np.array([[1.0, 1.0, np.inf, 1.0, -np.inf, -np.inf]])
    draws = Draws(np.full(1, SAMPLED, np.int8), table, one, one, one, np.ones(1, np.bool_))
    first = stage.submit(
        make_step([5, 6, 7]), None, msgspec.structs.replace(last(3), draws=draws, late=np.ones(1, np.bool_))
    )
    bias = np.full(1, 50.0, np.float32)
    stage.apply_edits(
        first, LateEdits(np.array([0, 1], np.int32), np.array([9], np.int32), bias * 0 + 1, bias)
    )
    tokens = stage.wait(first, 1.0).tokens
    assert tokens is not None
    assert tokens.tolist() == [9]
    fed = stage.submit(make_step([-1], 3, feed=first), None, last(1))
    other = make_stage()
    other.release(other.submit(make_step([5, 6, 7]), None, last(3)))
    explicit = other.submit(make_step([9], 3), None, last(1))
    assert np.array_equal(stage.wait(fed, 1.0).raw, other.wait(explicit, 1.0).raw)


def test_block_copies_are_done_before_the_layers(make_stage: MakeStage) -> None:
    stage = make_stage()
    tokens = list(range(20))
    stage.release(stage.submit(make_step(tokens), None, last(20)))
    plain = stage.submit(make_step([9], 20), None, last(1))
    expected = stage.wait(plain, 1.0).raw.copy()
    stage.release(plain)
    moved = Step(
        **{
            **{f: getattr(make_step([9], 20), f) for f in Step.__struct_fields__},
            "block_tables": tuple(np.array([[5, 6]], np.int32) for _ in range(2)),
            "copies": np.array([[g, a, b] for g in (0, 1) for a, b in ((1, 5), (2, 6))], np.int32),
        }
    )
    ticket = stage.submit(moved, None, last(1))
    assert np.array_equal(stage.wait(ticket, 1.0).raw, expected)


def test_no_more_steps_than_tickets(make_stage: MakeStage) -> None:
    stage = make_stage()
    tickets = [stage.submit(make_step([1], at), None, last(1)) for at in range(2)]
    with pytest.raises(DeviceError, match="all 2 tickets"):
        stage.submit(make_step([1], 2), None, last(1))
    stage.release(tickets[0])
    stage.submit(make_step([1], 2), None, last(1))


def test_a_released_ticket_is_unknown(make_stage: MakeStage) -> None:
    stage = make_stage()
    ticket = stage.submit(make_step([1]), None, last(1))
    stage.release(ticket)
    for call in (
        lambda: stage.wait(ticket, 1.0),
        lambda: stage.release(ticket),
        lambda: stage.hidden(ticket),
    ):
        with pytest.raises(ValueError, match="not in flight"):
            call()


def test_hidden_and_selection_are_given_exactly_where_they_belong(make_stage: MakeStage) -> None:
    hidden = HostHidden(np.zeros((1, 40), np.float32))
    cases = [
        (make_stage(), hidden, last(1), "hidden states are needed"),
        (make_stage(), None, None, "selection is needed"),
        (make_stage(3, 10), None, last(1), "hidden states are needed"),
        (make_stage(0, 3), None, last(1), "selection is needed"),
    ]
    for stage, states, selection, message in cases:
        with pytest.raises(ValueError, match=message):
            stage.submit(make_step([1]), states, selection)


def test_only_a_stage_with_the_head_has_candidates(make_stage: MakeStage) -> None:
    front, whole = make_stage(0, 3), make_stage()
    with pytest.raises(ValueError, match="no candidates"):
        front.wait(front.submit(make_step([1]), None, None), 1.0)
    with pytest.raises(ValueError, match="no hidden states"):
        whole.hidden(whole.submit(make_step([1]), None, last(1)))


@pytest.mark.parametrize("first", [0, 2])
def test_a_tap_is_the_output_of_a_program_that_ends_there(make_stage: MakeStage, first: int) -> None:
    taps = (3, 4, 8)
    hidden = HostHidden(np.ones((4, 40), np.float32)) if first else None
    stage = make_stage(first, taps=taps)
    ticket = stage.submit(make_step([5, 6, 7, 8]), hidden, last(4))
    for part in taps:
        cut = make_stage(first, part + 1)
        end = cut.submit(make_step([5, 6, 7, 8]), hidden, None)
        assert np.array_equal(stage.tap(ticket, part).host(), cut.hidden(end).host())


def test_only_taps_of_the_program_can_be_read(make_stage: MakeStage) -> None:
    stage = make_stage(taps=(3,))
    ticket = stage.submit(make_step([1]), None, last(1))
    with pytest.raises(ValueError, match=r"part 4 is no tap of this stage; its taps are \[3\]"):
        stage.tap(ticket, 4)
    stage.release(ticket)
    with pytest.raises(ValueError, match="not in flight"):
        stage.tap(ticket, 3)


def test_a_step_without_output_rows_only_fills_the_cache(make_stage: MakeStage) -> None:
    stage = make_stage()
    ticket = stage.submit(make_step([1, 2]), None, select_rows(np.zeros(0, np.int32)))
    assert stage.wait(ticket, 1.0).ids.shape == (0, 64)


def test_a_row_can_be_selected_twice(make_stage: MakeStage) -> None:
    stage = make_stage()
    ticket = stage.submit(make_step([1, 2]), None, select_rows(np.array([1, 1], np.int32)))
    first, second = stage.wait(ticket, 1.0).ids
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize(
    "hidden",
    [
        np.zeros((3, 40), np.float32),
        np.zeros((2, 39), np.float32),
        np.zeros((2, 40)),
        np.zeros((2, 80), np.float32)[:, ::2],
    ],
)
def test_hidden_states_that_do_not_fit_the_step_are_refused(
    make_stage: MakeStage, hidden: np.ndarray
) -> None:
    stage = make_stage(first=1)
    with pytest.raises(ValueError, match="hidden rows"):
        stage.submit(make_step([1, 2]), HostHidden(hidden), last(2))


def test_closing_twice_is_allowed(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.close()
    stage.close()
