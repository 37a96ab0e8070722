"""Devices that keep simulated time."""

from __future__ import annotations

from llmd.api.device import DeviceProfile
from llmd.api.program import Program
from llmd.api.step import Step
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

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def device_at(clock: Clock, rates: DeviceProfile, scale: float = 1.0) -> NullDevice:
    """Return a device that takes as long for the steps of one sequence as its rates say, times ``scale``."""

    def seconds(program: Program, step: Step) -> float:
        rows = Rows(1, step.num_rows, int(step.positions[-1]) + 1)
        copies = (program.hidden_in is not None) + (program.hidden_out is not None)
        copied = 4 * step.num_rows * copies * program.hidden_size
        parts_s = step_seconds(work_of(program, "f16"), rates, rows)
        return scale * (rates.step_s + parts_s + copied / rates.copy_bytes_per_s)

    return NullDevice(clock, step_s=seconds, pause=clock.pause)
