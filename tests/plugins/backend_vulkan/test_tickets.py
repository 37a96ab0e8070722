"""Host memory of a ticket, and the results that it holds."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import DeviceLostError, StageLimits
from llmd.api.spans import Stopwatch
from llmd_backend_vulkan.commands import Segment
from llmd_backend_vulkan.memory import copy
from llmd_backend_vulkan.runtime import Runtime
from llmd_backend_vulkan.step_clock import StepClock
from llmd_backend_vulkan.tickets import Flight, HiddenRows, TicketMemory, matrix_of
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.plugins.backend_vulkan.test_step_memory import program

LIMITS = StageLimits(max_rows=4, max_sequences=2, max_outputs=3)


class Running:
    """A recording that ends, or does not."""

    def __init__(self, *, ends: bool) -> None:
        self._ends = ends

    def wait(self, _timeout_s: float) -> bool:
        return self._ends


def test_rows_are_copied_without_their_padding(runtime: Runtime) -> None:
    buffer = runtime.host(3 * 8)
    buffer.view[:] = np.arange(24, dtype=np.float32).view(np.uint32)
    rows = matrix_of(buffer, 2, 5)
    assert rows.tolist() == [[0, 1, 2, 3, 4], [8, 9, 10, 11, 12]]
    buffer.view[:] = 0
    assert rows[1, 4] == 12


def test_memory_is_for_what_leaves_the_stage(runtime: Runtime) -> None:
    memory = TicketMemory(runtime, program(), LIMITS, None)
    assert memory.hidden_in is None
    assert memory.hidden_out is None
    assert memory.buffers == [memory.inputs]
    assert TicketMemory.num_words(program(), LIMITS) > memory.inputs.num_words


def test_hidden_rows_wait_for_the_step(runtime: Runtime) -> None:
    memory = TicketMemory(runtime, program(), LIMITS, None)
    memory.running = [Running(ends=True)]  # type: ignore[list-item]
    rows = HiddenRows(runtime, memory, memory.inputs, (2, 5)).host()
    assert rows.shape == (2, 5)
    assert memory.running == []


def test_a_step_that_does_not_end_loses_the_device(physical: PhysicalDevice) -> None:
    runtime = Runtime(physical, "vulkan:0")
    memory = TicketMemory(runtime, program(), LIMITS, None)
    memory.running = [Running(ends=True), Running(ends=False)]  # type: ignore[list-item]
    with pytest.raises(DeviceLostError, match="within 5 s"):
        memory.reach(runtime, 5.0)


def test_times_of_a_step_are_those_of_the_host_and_of_its_recordings(runtime: Runtime) -> None:
    buffers = [runtime.host(8) for _ in range(2)]
    segment = Segment([[copy(buffers[0], 0, buffers[1], 0, 8)]], name="layers")
    times = Stopwatch(is_on=True)
    flight = Flight(0, 1, None, times, [runtime.record_segments([segment], keeps_times=True)])
    flight.recordings[0].submit()
    times.stop("launch", "submit")
    assert flight.recordings[0].wait(60.0)
    assert [one.name for one in flight.spans(StepClock(runtime))] == ["submit", "layers"]
