"""What the planner chooses from: the cost of each part of a model on each device, and the memory there is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """What something costs on a device."""

    seconds: float
    """Seconds of a request."""
    num_bytes: int
    """Bytes of the device's memory."""


class Problem(msgspec.Struct, frozen=True):
    """A model and the devices that may have its parts. Devices and memories are indices."""

    memories: tuple[int, ...]
    """The memory of each device."""
    budgets: tuple[int, ...]
    """Bytes that may be taken of each memory."""
    parts: tuple[tuple[Cost | None, ...], ...]
    """``[part][device]``; None: the device cannot run the part."""
    stages: tuple[Cost, ...]
    """What each run of consecutive parts on the device costs in addition."""
    moves: tuple[tuple[float, ...], ...]
    """``[from][to]``: seconds for taking hidden states from one device to another."""
    tied_bytes: tuple[int, ...] = ()
    """Bytes that the last part does not take if the first part is on the same device; empty: none."""
    rivals: tuple[tuple[int, int], ...] = ()
    """Pairs of devices of which a choice may have only one."""

    @property
    def devices(self) -> range:
        """The devices."""
        return range(len(self.memories))


class Choice(msgspec.Struct, frozen=True):
    """A device for each part, and what that costs."""

    devices: tuple[int, ...]
    """The device of each part."""
    seconds: float
    """Seconds of a request."""
    num_bytes: tuple[int, ...]
    """Bytes taken of each memory."""


class Plan(msgspec.Struct, frozen=True):
    """The fastest choice that was found."""

    choice: Choice
    least_seconds: float
    """No choice that fits takes less."""


def cost_of(problem: Problem, devices: Sequence[int]) -> Choice | None:
    """Return what a choice costs, whether it fits or not; None if a device cannot run one of its parts."""
    seconds = 0.0
    num_bytes = [0] * len(problem.budgets)
    before = None
    for part, device in enumerate(devices):
        costs = [problem.parts[part][device]]
        if device != before:
            costs.append(problem.stages[device])
            seconds += 0.0 if before is None else problem.moves[before][device]
        for cost in costs:
            if cost is None:
                return None
            seconds += cost.seconds
            num_bytes[problem.memories[device]] += cost.num_bytes
        before = device
    if problem.tied_bytes and devices[0] == devices[-1] and len(devices) > 1:
        num_bytes[problem.memories[devices[0]]] -= problem.tied_bytes[devices[0]]
    return Choice(tuple(devices), seconds, tuple(num_bytes))


def fits(problem: Problem, choice: Choice) -> bool:
    """Whether no memory has less than a choice takes of it, and no device has a rival."""
    chosen = set(choice.devices)
    return not any(chosen.issuperset(pair) for pair in problem.rivals) and all(
        taken <= budget for taken, budget in zip(choice.num_bytes, problem.budgets, strict=True)
    )
