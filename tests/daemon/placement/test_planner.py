from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from msgspec import structs

from llmd.placement.planner import best_plan
from llmd.placement.problem import Cost, Problem, fits
from tests.daemon.placement.problems import MIB, best_of_all, cost, problem, problems


def devices_of(given: Problem) -> tuple[int, ...]:
    plan = best_plan(given)
    assert plan is not None
    return plan.choice.devices


@given(problems())
def test_no_other_choice_is_faster(given: Problem) -> None:
    best, plan = best_of_all(given), best_plan(given, tolerance=0.0, budget_s=60)
    assert (plan is None) == (best is None)
    if plan and best:
        assert fits(given, plan.choice)
        assert plan.choice.seconds == pytest.approx(best.seconds)
        assert plan.least_seconds == pytest.approx(best.seconds)


@given(problems())
def test_the_bound_holds_and_the_choice_fits_with_any_tolerance(given: Problem) -> None:
    best, plan = best_of_all(given), best_plan(given, tolerance=0.5)
    if plan and best:
        assert fits(given, plan.choice)
        assert plan.least_seconds <= best.seconds * (1 + 1e-9)
        assert plan.choice.seconds <= plan.least_seconds / (1 - 0.5) * (1 + 1e-9)


def test_one_device_with_room_has_the_whole_model() -> None:
    assert devices_of(problem([[cost(1, 10), cost(3, 10)]] * 4, 40, 100, move=0.1)) == (0,) * 4


def test_a_slower_device_gets_only_what_memory_forces_there() -> None:
    found = devices_of(problem([[cost(1, 10), cost(3, 10)]] * 6, 45, 100, move=0.1))
    assert found.count(1) == 2
    assert len(list(itertools.groupby(found))) == 2, "one stage on each"


def test_a_move_that_costs_more_than_it_saves_is_not_made() -> None:
    slow_in_between = [[cost(1, 1), cost(2, 1)], [cost(2, 1), cost(1, 1)], [cost(1, 1), cost(2, 1)]]
    assert devices_of(problem(slow_in_between, 9, 9, move=0.1)) == (0, 1, 0)
    assert devices_of(problem(slow_in_between, 9, 9, move=1.0)) == (0, 0, 0)


def test_parts_of_a_layer_are_placed_apart_where_that_is_faster() -> None:
    """Feed-forward parts take much memory, and the second device is nearly as fast with them."""
    attention, ffn = [cost(1, 2), cost(9, 2)], [cost(1, 20), cost(2, 20)]
    found = devices_of(problem([attention, ffn] * 4, 60, 1000, move=0.05))
    assert found[::2] == (0,) * 4
    assert found[1::2].count(0) == 2


def test_a_part_that_a_device_refuses_goes_elsewhere() -> None:
    parts: list[list[Cost | None]] = [[cost(1, 1), cost(9, 1)], [None, cost(9, 1)], [cost(1, 1), cost(9, 1)]]
    assert devices_of(problem(parts, 9, 9)) == (0, 1, 0)


def test_devices_that_share_a_memory_share_its_bytes() -> None:
    both = problem([[cost(1, 10), cost(1, 10)]] * 2, 10, 10)
    assert best_plan(both) is not None
    shared = Problem((0, 0), (10 * MIB,), both.parts, both.stages, both.moves)
    assert best_plan(shared) is None


def test_step_buffers_of_each_stage_take_memory() -> None:
    assert best_plan(problem([[cost(1, 10)]] * 2, 21, stage=cost(0, 1))) is not None
    assert best_plan(problem([[cost(1, 10)]] * 2, 21, stage=cost(0, 2))) is None


def test_nothing_fits() -> None:
    assert best_plan(problem([[cost(1, 10), cost(1, 10)]] * 3, 5, 20)) is None


def test_eighty_layers_on_three_devices_are_nearly_as_fast_as_possible() -> None:
    """Two devices are nearly full, so that a proof of the best choice would take very long."""
    rates = (3e12, 1e12, 6e10)
    sizes = [100 * MIB, 300 * MIB]
    parts = [[Cost(128 * size / rate, size) for rate in rates] for size in sizes] * 80
    plan = best_plan(problem(parts, 20_000, 8_000, 64_000, move=1e-2))
    assert plan is not None
    assert plan.choice.seconds < 1.1 * plan.least_seconds
    assert plan.choice.num_bytes[0] > 19_500 * MIB
    assert plan.choice.num_bytes[1] > 7_500 * MIB


def test_rivals_do_not_share_a_model() -> None:
    """The first device has room for half of the model, and only its rival would be a fast second one."""
    parts = [[cost(1, 10), cost(2, 10), cost(5, 10)]] * 4
    free = problem(parts, 25, 100, 100, move=0.1)
    assert sorted(devices_of(free)) == [0, 0, 1, 1]
    assert set(devices_of(structs.replace(free, rivals=((0, 1),)))) == {1}
    small = structs.replace(problem(parts, 25, 25, 100, move=0.1), rivals=((0, 1),))
    assert sorted(devices_of(small)) == [0, 0, 2, 2]


def test_a_model_that_fits_its_fastest_device_needs_no_solver() -> None:
    code = (
        "import sys; from llmd.placement.planner import best_plan; from tests.daemon.placement.problems import *; "
        "plan = best_plan(problem([[cost(1, 10), cost(3, 10)]] * 4, 40, 100, move=0.1)); "
        "assert plan.choice.devices == (0,) * 4; assert plan.least_seconds == 4; assert 'highspy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
