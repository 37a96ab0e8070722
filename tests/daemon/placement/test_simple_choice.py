from __future__ import annotations

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
