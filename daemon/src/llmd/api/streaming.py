"""Weights that stay in main memory: a device copies them while it computes the parts before theirs."""

from __future__ import annotations

from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.api.features import STREAMS
from llmd.api.program import Program


def may_stream(info: DeviceInfo) -> bool:
    """Whether a device has a memory of its own, to which it can copy weights in each step."""
    return info.memory_id != HOST_MEMORY and STREAMS in info.features


def streamed_weights(program: Program) -> dict[int, tuple[int, ...]]:
    """Return the weights of each streamed part, as ascending indices in `Program.weights`.

    These are the weights that only instructions of that part use. All others stay on the device. A device
    needs room for the weights of two streamed parts at a time: of one that is computed, and of the next one.
    """
    users: dict[int, set[int]] = {}
    for instruction in program.instructions:
        for slotted in instruction.ops:
            for index in slotted.weights:
                if index is not None:
                    users.setdefault(index, set()).add(instruction.part)
    return {
        part: tuple(index for index, parts in sorted(users.items()) if parts == {part})
        for part in program.streamed
    }


def resident_weights(program: Program) -> tuple[int, ...]:
    """Return the weights that stay on the device, as ascending indices in `Program.weights`."""
    streamed = {index for indices in streamed_weights(program).values() for index in indices}
    return tuple(index for index in range(len(program.weights)) if index not in streamed)
