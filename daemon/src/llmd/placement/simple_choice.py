"""A choice of devices that is found at once: one after the other gets as much as it has room for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from llmd.placement.problem import Choice, Problem, cost_of, fits


def simple_choice(problem: Problem) -> Choice | None:
    """Return the fastest choice that fits, of those that fill devices in some order; None: there is none."""
    filled = (_fill(problem, order) for order in itertools.permutations(problem.devices))
    choices = [cost_of(problem, devices) for devices in filled if devices]
    fitting = [choice for choice in choices if choice and fits(problem, choice)]
    return min(fitting, key=lambda choice: choice.seconds, default=None)


def _fill(problem: Problem, order: Sequence[int]) -> list[int]:
    """Give each part to the first device that has room and did not have to pass on a part before.

    Return the device of each part; empty if a part finds none.
    """
    left = list(problem.budgets)
    devices: list[int] = []
    remaining = list(order)
    for costs in problem.parts:
        while remaining:
            device = remaining[0]
            cost, memory = costs[device], problem.memories[device]
            begins = not devices or devices[-1] != device
            needed = 0 if cost is None else cost.num_bytes + begins * problem.stages[device].num_bytes
            if cost is not None and needed <= left[memory]:
                left[memory] -= needed
                devices.append(device)
                break
            del remaining[0]
        else:
            return []
    return devices
