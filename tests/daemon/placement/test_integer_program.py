from __future__ import annotations

import pytest
from hypothesis import given
from msgspec import structs

from llmd.placement.integer_program import PlacementProgram
from llmd.placement.problem import Plan, Problem, fits
from llmd.placement.simple_choice import simple_choice
from tests.daemon.placement.problems import best_of_all, cost, problem, problems


def solved(given: Problem, *, begins: bool) -> Plan | None:
    program = PlacementProgram(given)
    if begins and (simple := simple_choice(given)):
        program.begin_with(simple)
    assert program.solve(0.0, 60)
    return program.plan()


@pytest.mark.parametrize("begins", [False, True])
@given(given=problems())
def test_the_best_choice_is_found(given: Problem, *, begins: bool) -> None:
    best, plan = best_of_all(given), solved(given, begins=begins)
    assert (plan is None) == (best is None)
    if plan and best:
        assert fits(given, plan.choice)
        assert plan.choice.seconds == pytest.approx(best.seconds)
        assert plan.least_seconds == pytest.approx(best.seconds)


def test_parts_that_depend_on_the_ones_before_stay_with_them() -> None:
    quick, slow = cost(1.0, 1), cost(5.0, 1)
    apart_or_not = problem([[slow, quick], [quick, cost(9.0, 1)], [quick, slow]], 9, 9)
    apart = solved(apart_or_not, begins=False)
    assert apart is not None
    assert apart.choice.devices == (1, 0, 0)
    together = solved(structs.replace(apart_or_not, dependent=frozenset({1})), begins=False)
    assert together is not None
    assert together.choice.devices == (0, 0, 0)
