from __future__ import annotations

from msgspec import structs

from llmd.placement.problem import Choice, Cost, Problem, cost_of, fits

TWO = Problem(
    memories=(0, 1),
    budgets=(10, 20),
    parts=((Cost(1.0, 3), Cost(5.0, 3)), (Cost(2.0, 4), None), (Cost(1.0, 5), Cost(4.0, 6))),
    stages=(Cost(0.25, 1), Cost(0.5, 2)),
    moves=((0.0, 0.125), (0.25, 0.0)),
)


def test_a_choice_costs_its_parts_and_one_stage() -> None:
    assert cost_of(TWO, (0, 0, 0)) == Choice((0, 0, 0), 4.25, (13, 0))


def test_each_run_of_parts_is_a_stage_and_hidden_states_move_between_them() -> None:
    assert cost_of(TWO, (1, 0, 1)) == Choice((1, 0, 1), 5 + 2 + 4 + 0.5 + 0.25 + 0.5 + 0.25 + 0.125, (5, 13))


def test_a_device_that_cannot_run_a_part_has_no_cost() -> None:
    assert cost_of(TWO, (0, 1, 1)) is None


def test_what_the_last_part_shares_with_the_first_is_stored_once_on_a_device() -> None:
    tied = Problem(TWO.memories, TWO.budgets, TWO.parts, TWO.stages, TWO.moves, tied_bytes=(5, 6))
    together, apart = cost_of(tied, (0, 0, 0)), cost_of(tied, (0, 0, 1))
    assert together is not None
    assert together.num_bytes == (8, 0)
    assert apart is not None
    assert apart.num_bytes == (8, 8)


def test_a_single_part_shares_nothing_with_itself() -> None:
    one = Problem((0,), (10,), ((Cost(1.0, 6),),), (Cost(0.0, 0),), ((0.0,),), tied_bytes=(6,))
    assert cost_of(one, (0,)) == Choice((0,), 1.0, (6,))


def test_a_choice_fits_up_to_the_last_byte_of_each_memory() -> None:
    assert fits(TWO, Choice((), 0.0, (10, 20)))
    assert not fits(TWO, Choice((), 0.0, (11, 20)))
    assert not fits(TWO, Choice((), 0.0, (10, 21)))


def test_a_part_that_depends_on_the_one_before_is_not_apart_from_it() -> None:
    tied = structs.replace(TWO, dependent=frozenset({1}))
    assert cost_of(tied, (0, 0, 1)) == cost_of(TWO, (0, 0, 1))
    assert cost_of(tied, (1, 0, 0)) is None
    assert cost_of(TWO, (1, 0, 0)) is not None
