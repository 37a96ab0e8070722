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
    host_bytes: int = 0
    """Bytes of main memory in addition: weights that are copied to the device in each step."""


NOTHING = Cost(0.0, 0)


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
    host: int | None = None
    """The memory that `Cost.host_bytes` are taken of; None: there are none."""
    hardware: tuple[int, ...] = ()
    """A number for each device. Devices of one number are one device in truth, which keeps weights in
    different memories: its consecutive parts are one stage. Empty: all numbers are different."""
    uses: tuple[Cost, ...] = ()
    """What each device costs once if it has any part; empty: nothing."""
    dependent: frozenset[int] = frozenset()
    """Parts that must be on the device of the part before them. What they cost is counted in the part that
    the first of them depends on."""

    def is_border(self, before: int | None, device: int) -> bool:
        """Whether a part on ``device`` begins a stage, after a part on ``before`` (None: it is the first)."""
        if before is None:
            return True
        return self.hardware[before] != self.hardware[device] if self.hardware else before != device

    def use(self, device: int) -> Cost:
        """Return what a device costs once."""
        return self.uses[device] if self.uses else NOTHING

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
    """Return what a choice costs, whether it fits or not.

    None: a device cannot run one of its parts, or a part is apart from the one that it depends on.
    """
    if any(devices[part] != devices[part - 1] for part in problem.dependent):
        return None
    seconds = 0.0
    num_bytes = [0] * len(problem.budgets)
    before = None
    for part, device in enumerate(devices):
        costs = [problem.parts[part][device]]
        if problem.is_border(before, device):
            costs.append(problem.stages[device])
            seconds += 0.0 if before is None else problem.moves[before][device]
        if device not in devices[:part]:
            costs.append(problem.use(device))
        for cost in costs:
            if cost is None:
                return None
            seconds += cost.seconds
            num_bytes[problem.memories[device]] += cost.num_bytes
            if problem.host is not None:
                num_bytes[problem.host] += cost.host_bytes
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
