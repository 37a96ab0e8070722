"""Tests of the simulated stream of copies: what a kernel or a copy does not wait for is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import DeviceError
from llmd_backend_cuda.runtime import Launch, Memory
from tests.cuda.simt.bench import Bench, kernel
from tests.cuda.simt.build import compiler
from tests.cuda.simt.runtime import SimtRuntime

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs g++")

POISONED = -1
COPY = kernel("((i32*)args.out)[thread_index()] = ((const i32*)args.in)[thread_index()];")


class Streamed:
    """Two numbers that are copied to the same memory one after the other, each for a kernel that reads it."""

    def __init__(self, folder: Path, *, deferred: bool) -> None:
        self.bench = Bench(folder, deferred=deferred)
        self.runtime = self.bench.runtime
        self.copies = self.runtime.copy_stream()
        self.buffer = self.runtime.allocate(128)
        self.outputs = [self.runtime.allocate(128) for _ in range(2)]

    def run(self, *, awaits_copies: bool = True, awaits_kernels: bool = True) -> list[int]:
        """Return what the kernels have read."""
        for number, output in enumerate(self.outputs, 1):
            given = self.runtime.pinned(128).view(np.int32)
            given[:] = number
            self.copies.upload(self.buffer, 0, given)
            copied = self.copies.record()
            if awaits_copies:
                self.runtime.wait_for(copied)
            self.runtime.launch(self.bench.launch(COPY, self.buffer, output))
            if awaits_kernels:
                self.copies.wait_for(self.runtime.record())
        return [self.read(output) for output in self.outputs]

    def read(self, memory: Memory) -> int:
        """Return a number; all in the memory are equal."""
        values = np.empty(32, np.int32)
        self.runtime.download(values, memory, 0)
        (value,) = set(values.tolist())
        return value


@pytest.mark.parametrize("deferred", [False, True])
def test_what_is_waited_for_is_there(tmp_path: Path, deferred: bool) -> None:  # noqa: FBT001 - cases
    assert Streamed(tmp_path, deferred=deferred).run() == [1, 2]


@pytest.mark.parametrize("deferred", [False, True])
def test_a_copy_that_is_not_waited_for_has_not_ended(tmp_path: Path, deferred: bool) -> None:  # noqa: FBT001 - cases
    found = Streamed(tmp_path, deferred=deferred).run(awaits_copies=False)
    assert found == [POISONED, POISONED]


def test_a_copy_that_waits_for_no_reader_has_begun_before_it(tmp_path: Path) -> None:
    assert Streamed(tmp_path, deferred=True).run(awaits_kernels=False) == [POISONED, 2]


def test_streams_that_wait_for_each_other_are_found() -> None:
    runtime = SimtRuntime(deferred=True)
    copies = runtime.copy_stream()
    memory, array = runtime.allocate(8), runtime.pinned(8)
    late = SimtRuntime(deferred=True).record()  # never reached
    copies.wait_for(late)
    copies.upload(memory, 0, array)
    runtime.wait_for(copies.record())
    with pytest.raises(DeviceError, match="waits for a copy that waits for it"):
        runtime.synchronize()


def test_a_kernel_that_begins_early_must_not_follow_a_wait(tmp_path: Path) -> None:
    streamed = Streamed(tmp_path, deferred=False)
    launch = streamed.bench.launch(COPY, streamed.buffer, streamed.outputs[0])
    early = Launch(launch.kernel, launch.grid, launch.threads, launch.args, overlaps=True)
    streamed.runtime.wait_for(streamed.copies.record())
    with pytest.raises(DeviceError, match="test may begin before the copy"):
        streamed.runtime.launch(early)


def test_only_pinned_memory_within_bounds_is_copied() -> None:
    runtime = SimtRuntime()
    copies, memory = runtime.copy_stream(), runtime.allocate(8)
    with pytest.raises(DeviceError, match="pinned memory only"):
        copies.upload(memory, 0, np.zeros(8, np.uint8))
    with pytest.raises(DeviceError, match="beyond 8 bytes"):
        copies.upload(memory, 4, runtime.pinned(8))


def test_a_copy_takes_from_its_begin_to_the_wait_for_it() -> None:
    runtime = SimtRuntime(deferred=True)
    copies, memory, array = runtime.copy_stream(), runtime.allocate(8), runtime.pinned(8)
    free = runtime.timestamp()
    copies.wait_for(free)
    begin = copies.timestamp()
    copies.upload(memory, 0, array)
    end = copies.timestamp()
    working = runtime.timestamp()
    runtime.wait_for(end)
    after = runtime.timestamp()
    runtime.synchronize()
    points = [free, begin, working, end, after]
    assert [point.seconds_after(free) for point in points] == sorted(
        point.seconds_after(free) for point in points
    )
    assert end.seconds_after(begin) > 0.0


def test_a_host_that_does_not_wait_sees_the_end_of_copies_when_it_asks_again() -> None:
    runtime = SimtRuntime(deferred=True)
    copies, memory, array = runtime.copy_stream(), runtime.allocate(8), runtime.pinned(8)
    computed = runtime.record()
    copies.wait_for(computed)
    copies.upload(memory, 0, array)
    copied = copies.record()
    assert [copied.wait(0.0) for _ in range(3)] == [False] * 3, "the stream has not come to the copies"
    assert computed.wait(1.0)
    assert copied.wait(0.0)


def test_captured_graphs_have_no_other_streams() -> None:
    runtime = SimtRuntime()
    copies = runtime.copy_stream()
    copied = copies.record()
    for call in (runtime.copy_stream, copies.record, lambda: runtime.wait_for(copied)):
        with pytest.raises(DeviceError, match="not allowed while a graph is captured"):
            runtime.capture(call)  # type: ignore[arg-type] # what it returns is not used
    assert copied.wait(1.0)
