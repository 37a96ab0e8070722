"""A choice of devices that is found at once: one after the other gets as much as it has room for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from llmd.placement.problem import Choice, Cost, Problem, cost_of, fits

MOST_SHUFFLED = 5
"""Devices that are tried in every order; with more, only the first one varies."""


def simple_choice(problem: Problem) -> Choice | None:
    """Return the fastest choice that fits, of those that fill devices in some order; None: there is none.

    Devices are filled from the first part on, or from the last part back.
    """
    parts = problem.parts
    filled = [_fill(problem, parts, order) for order in _orders(problem)]
    filled += [_fill(problem, parts[::-1], order)[::-1] for order in _orders(problem)]
    choices = [cost_of(problem, devices) for devices in filled if devices]
    fitting = [choice for choice in choices if choice and fits(problem, choice)]
    return min(fitting, key=lambda choice: choice.seconds, default=None)


def _orders(problem: Problem) -> Iterable[Sequence[int]]:
    """Return the orders to fill devices in."""
    devices = sorted(problem.devices, key=lambda device: _seconds(problem, device))
    if len(devices) <= MOST_SHUFFLED:
        return itertools.permutations(devices)
    return [[first, *(device for device in devices if device != first)] for first in devices]


def _seconds(problem: Problem, device: int) -> float:
    """Return what the parts take that a device can run."""
    return sum(cost.seconds for cost in (costs[device] for costs in problem.parts) if cost)


def _fill(problem: Problem, parts: Sequence[Sequence[Cost | None]], order: Sequence[int]) -> list[int]:
    """Give each part to the first device that has room and did not have to pass on a part before.

    Return the device of each part; empty if a part finds none.
    """
    left = list(problem.budgets)
    devices: list[int] = []
    remaining = list(order)
    for costs in parts:
        while remaining and not _takes(problem, remaining[0], costs, devices, left):
            del remaining[0]
        if not remaining:
            return []
        devices.append(remaining[0])
    return devices


def _takes(
    problem: Problem, device: int, costs: Sequence[Cost | None], devices: Sequence[int], left: list[int]
) -> bool:
    """Whether a device can have the next part after ``devices``. If so, its bytes are taken from ``left``."""
    cost, memory = costs[device], problem.memories[device]
    if cost is None or any({device, other} in map(set, problem.rivals) for other in set(devices)):
        return False
    needed = cost.num_bytes
    if problem.is_border(devices[-1] if devices else None, device):
        needed += problem.stages[device].num_bytes
    if device not in devices:
        needed += problem.use(device).num_bytes
    taken = [(memory, needed)] + ([(problem.host, cost.host_bytes)] if problem.host is not None else [])
    if any(num_bytes > left[place] for place, num_bytes in taken):
        return False
    for place, num_bytes in taken:
        left[place] -= num_bytes
    return True
