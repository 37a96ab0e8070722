from __future__ import annotations

from msgspec import structs

from llmd.placement.problem import Cost, Problem
from llmd.placement.simple_choice import simple_choice


def problem(
    memories: tuple[int, ...], budgets: tuple[int, ...], *seconds: float | None, parts: int = 4
) -> Problem:
    """Return parts of ten bytes that take some seconds on each device; a stage takes one byte."""
    costs = tuple(None if one is None else Cost(one, 10) for one in seconds)
    nothing = (0.0,) * len(memories)
    return Problem(
        memories, budgets, (costs,) * parts, (Cost(0.0, 1),) * len(memories), (nothing,) * len(memories)
    )


def devices_of(given: Problem) -> tuple[int, ...]:
    choice = simple_choice(given)
    assert choice is not None
    return choice.devices


def test_the_fastest_device_with_room_has_everything() -> None:
    assert devices_of(problem((0, 1), (100, 100), 2.0, 1.0)) == (1,) * 4


def test_a_full_device_leaves_the_rest_to_the_next() -> None:
    assert devices_of(problem((0, 1), (21, 100), 1.0, 2.0)) == (0, 0, 1, 1)


def test_devices_of_one_memory_fill_it_together() -> None:
    assert simple_choice(problem((0, 0), (41, 0), 1.0, 2.0)) is not None
    assert simple_choice(problem((0, 0), (40, 0), 1.0, 2.0)) is None


def test_a_device_that_cannot_run_a_part_is_passed_over() -> None:
    assert devices_of(problem((0, 1), (100, 100), None, 2.0)) == (1,) * 4


def test_devices_are_filled_from_the_end_too() -> None:
    """The last part takes longest on the slow device, and the fast one has room for half of the parts."""
    costs = (Cost(1.0, 10), Cost(2.0, 10))
    last = (Cost(1.0, 10), Cost(9.0, 10))
    parts = (costs, costs, costs, last)
    moves = ((0.0, 0.0), (0.0, 0.0))
    given = Problem((0, 1), (20, 100), parts, (Cost(0.0, 0),) * 2, moves)
    assert devices_of(given) == (1, 1, 0, 0)


def test_rivals_do_not_share() -> None:
    given = structs.replace(problem((0, 1, 2), (21, 100, 100), 1.0, 2.0, 4.0), rivals=((0, 1),))
    assert devices_of(given) == (1,) * 4
    assert devices_of(structs.replace(given, rivals=((1, 2),))) == (0, 0, 1, 1)


def test_of_many_devices_each_may_come_first() -> None:
    seconds = [float(2 + place) for place in range(8)]
    given = problem(tuple(range(8)), (21,) * 8, *seconds, parts=5)
    found = devices_of(given)
    assert sorted(found) == [0, 0, 1, 1, 2]
