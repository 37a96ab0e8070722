"""Choose a device for each part of a model, so that a request takes the least time that memory allows.

A choice is a path through the parts, whose steps cost seconds and take bytes of memories: a constrained
shortest path, which `llmd.placement.integer_program` solves unless a simple choice is as fast as any can be.
"""

from __future__ import annotations

import math

from llmd.placement.problem import Choice, Plan, Problem
from llmd.placement.simple_choice import simple_choice

TOLERANCE = 0.03
"""Share of its seconds by which a choice may be slower than the best one. Rates are not known better, and a
choice with few stages, which is found at once, is preferred to one with many that is hardly faster."""
BUDGET_S = 3.0
"""Seconds after which the best choice so far is taken. If several memories are nearly full, a proof may take
much longer."""


def best_plan(problem: Problem, *, tolerance: float = TOLERANCE, budget_s: float = BUDGET_S) -> Plan | None:
    """Return a choice that fits and is as fast as possible; None if none fits.

    With a ``tolerance`` of 0 and enough time, no other choice is faster. While none is known that fits, the
    search goes on beyond ``budget_s`` seconds.
    """
    simple = simple_choice(problem)
    least = _least_seconds(problem)
    if simple and _is_enough(simple, least, tolerance):
        return Plan(simple, least)
    # Imported late: it takes a tenth of a second and 5 MB, and most models fit their fastest device.
    from llmd.placement.integer_program import PlacementProgram

    program = PlacementProgram(problem)
    if simple:
        program.begin_with(simple)
    while not program.solve(tolerance, budget_s):
        budget_s *= 2
    plan = program.plan()
    if simple and plan and _is_enough(simple, plan.least_seconds, tolerance):
        return Plan(simple, plan.least_seconds)
    return plan


def _is_enough(choice: Choice, least_seconds: float, tolerance: float) -> bool:
    """Whether a choice is as fast as it has to be."""
    return choice.seconds * (1.0 - tolerance) <= least_seconds


def _least_seconds(problem: Problem) -> float:
    """Return what each part takes on its fastest device, in a single stage: no choice takes less."""
    able = [min((cost.seconds for cost in costs if cost), default=math.inf) for costs in problem.parts]
    return sum(able) + min(stage.seconds for stage in problem.stages)
