"""Devices that keep simulated time."""

from __future__ import annotations

from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.api.ops import Attention
from llmd.api.program import Program
from llmd.api.step import Step
from llmd.api.streaming import streamed_weights
from llmd.placement.seconds import Rows, step_seconds
from llmd.placement.work import work_of
from llmd.testing.null_device import NullDevice


class Clock:
    """A clock that goes on while somebody waits; it takes the place of the module ``time``."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def perf_counter(self) -> float:
        return self.now_s

    def perf_counter_ns(self) -> int:
        return int(1e9 * self.now_s)

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def parts_seconds(program: Program, rates: DeviceProfile, rows: Rows) -> float:
    """Return what the parts of a program take.

    Each is computed after the part before it and, if it is streamed, after its weights were copied. Copies
    follow each other, and go to two buffers in turn.
    """
    if not program.streamed:
        return step_seconds(work_of(program, "f16"), rates, rows)
    weights = streamed_weights(program)
    computed_s = copied_s = 0.0
    freed = [0.0, 0.0]
    for part in sorted({one.part for one in program.instructions}):
        only = part_of(program, part)
        if part in weights:
            num_bytes = sum(program.weights[index].num_bytes for index in weights[part])
            copied_s = max(copied_s, freed[0]) + num_bytes / rates.stream_bytes_per_s
            computed_s = max(computed_s, copied_s)
        computed_s += step_seconds(work_of(only, "f16"), rates, rows)
        if part in weights:
            freed = [freed[1], computed_s]
    return computed_s


def part_of(program: Program, part: int) -> Program:
    """Return a program with the instructions of a part alone."""
    instructions = tuple(one for one in program.instructions if one.part == part)
    layers = {one.op.layer for it in instructions for one in it.ops if isinstance(one.op, Attention)}
    groups = tuple(
        structs.replace(group, layers=tuple(layer for layer in group.layers if layer in layers))
        for group in program.groups
    )
    return structs.replace(program, instructions=instructions, groups=groups)


def device_at(clock: Clock, rates: DeviceProfile, scale: float = 1.0) -> NullDevice:
    """Return a device that takes as long for the steps of one sequence as its rates say, times ``scale``."""

    def seconds(program: Program, step: Step) -> float:
        rows = Rows(1, step.num_rows, int(step.positions[-1]) + 1)
        copies = (program.hidden_in is not None) + (program.hidden_out is not None)
        copied = 4 * step.num_rows * copies * program.hidden_size
        parts_s = parts_seconds(program, rates, rows)
        return scale * (rates.step_s + parts_s + copied / rates.copy_bytes_per_s)

    return NullDevice(clock, step_s=seconds, pause=clock.pause)
