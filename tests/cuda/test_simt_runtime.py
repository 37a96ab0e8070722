"""Tests of the runtime that runs CUDA kernels on the host: launches and graphs."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.errors import DeviceError
from llmd_backend_cuda.runtime import KernelSpec, Launch
from tests.cuda.simt.bench import HEADER, Args, Bench, kernel
from tests.cuda.simt.build import compiler
from tests.cuda.simt.runtime import SimtRuntime

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs g++")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


NOTHING = kernel("")


def test_arguments_of_another_size_are_found(bench: Bench) -> None:
    memory = bench.runtime.allocate(16)
    launch = bench.launch(NOTHING, None, memory)

    class Short(ctypes.Structure):
        _fields_ = (("input", ctypes.c_void_p),)

    with pytest.raises(DeviceError, match="test takes 24 bytes of arguments, not 8"):
        bench.runtime.launch(Launch(launch.kernel, (1, 1, 1), 32, Short()))


def test_more_threads_than_promised_are_found(bench: Bench) -> None:
    body = "constexpr int MOST = 64;\nKERNEL BOUNDS(MOST, 2) test(const Args args) {}"
    with pytest.raises(DeviceError, match="test has at most 64 threads, not 96"):
        bench.run(body, None, np.zeros(4), threads=96)
    bench.run(body, None, np.zeros(4), threads=64)


def test_a_kernel_may_have_the_name_of_a_function_of_the_c_library(bench: Bench) -> None:
    filling = "KERNEL lfind(const Args args) { ((float*)args.out)[thread_index()] = 7; }"
    memory = bench.runtime.allocate(32 * 4)
    launch = bench.launch(kernel("", before=filling), None, memory)
    named = bench.runtime.kernel(KernelSpec.of("test0", "lfind"))
    bench.runtime.launch(Launch(named, launch.grid, launch.threads, launch.args))
    result = np.zeros(32, np.float32)
    bench.runtime.download(result, memory, 0)
    assert result.tolist() == [7.0] * 32


@pytest.mark.parametrize(
    "change", [{"threads": 33}, {"threads": 1056}, {"blocks": 0}, {"shared_bytes": 1 << 18}]
)
def test_impossible_launches_are_refused(bench: Bench, change: dict[str, int]) -> None:
    with pytest.raises(DeviceError, match="test cannot"):
        bench.run(NOTHING, None, np.zeros(4), **change)


def test_compile_errors_name_the_file(bench: Bench) -> None:
    with pytest.raises(DeviceError, match=re.compile("test0 does not compile.*test0.cu.*unknown", re.DOTALL)):
        bench.run(kernel("unknown = 1;"), None, np.zeros(4))


def test_missing_kernels_are_named(bench: Bench) -> None:
    with pytest.raises(DeviceError, match=r"there is no kernel file absent\.cu"):
        bench.runtime.kernel(KernelSpec.of("absent", "test"))
    bench.launch(NOTHING, None, bench.runtime.allocate(4))
    with pytest.raises(DeviceError, match=r"there is no kernel absent in test0\.cu"):
        bench.runtime.kernel(KernelSpec.of("test0", "absent"))


def test_definitions_choose_kernels(bench: Bench) -> None:
    body = "#if WIDE\nKERNEL wide(const Args args) { ((i32*)args.out)[0] = WIDE; }\n#endif\n" + NOTHING
    output = bench.runtime.allocate(4)
    bench.launch(body, None, output)  # writes the file
    kernel_of = bench.runtime.kernel(KernelSpec.of("test0", "wide", {"WIDE": 7}))
    bench.runtime.launch(Launch(kernel_of, (1, 1, 1), 32, Args(0, output.pointer, 0)))
    result = np.zeros(1, np.int32)
    bench.runtime.download(result, output, 0)
    assert result.tolist() == [7]


ADD_COUNT = kernel("((i32*)args.out)[thread_index()] = ((const i32*)args.in)[thread_index()] + args.count;")


def test_graphs_replay_launches_and_copies_of_pinned_memory(bench: Bench) -> None:
    runtime = bench.runtime
    given, taken = (runtime.pinned(128).view(np.int32), runtime.pinned(128).view(np.int32))
    memory, output = runtime.allocate(128), runtime.allocate(128)
    launch = bench.launch(ADD_COUNT, memory, output, count=5)

    def step() -> None:
        runtime.fill_zero(output)
        runtime.upload(memory, 0, given)
        runtime.launch(launch)
        runtime.download(taken, output, 0)

    graph = runtime.capture(step)
    assert set(taken.tolist()) == {-1}  # nothing ran yet
    launch.args.count = 1000  # the graph has a copy of the arguments
    for start in (1, 100):
        given[:] = np.arange(start, start + 32)
        graph.launch()
        runtime.synchronize()
        assert runtime.record().wait(1.0)
        np.testing.assert_array_equal(taken, given + 5)


def _refused(bench: Bench) -> dict[str, Callable[[], object]]:
    runtime = bench.runtime
    memory, event = runtime.allocate(128), runtime.record()
    array = np.zeros(32, np.int32)
    graph = runtime.capture(lambda: None)
    (bench.folder / "late.cu").write_text(HEADER + NOTHING, encoding="utf-8")
    return {
        "allocate": lambda: runtime.allocate(4),
        "pinned": lambda: runtime.pinned(4),
        "upload": lambda: runtime.upload(memory, 0, array),
        "download": lambda: runtime.download(array, memory, 0),
        "synchronize": runtime.synchronize,
        "wait": lambda: event.wait(1.0),
        "wait for a new point": lambda: runtime.record().wait(1.0),
        "compile": lambda: runtime.kernel(KernelSpec.of("late", "test")),
        "capture": lambda: runtime.capture(lambda: None),
        "graph": graph.launch,
    }


def test_capture_refuses_what_a_device_refuses(bench: Bench) -> None:
    def refuse(call: Callable[[], object]) -> None:
        with pytest.raises(DeviceError, match="is not allowed while a graph is captured"):
            call()

    for call in _refused(bench).values():
        bench.runtime.capture(lambda call=call: refuse(call))  # type: ignore[misc]
        call()  # is allowed outside


def test_events_of_a_capture_are_never_reached(bench: Bench) -> None:
    events = []
    bench.runtime.capture(lambda: events.append(bench.runtime.record()))
    with pytest.raises(DeviceError, match="recorded in a capture"):
        events[0].wait(1.0)


def test_deferred_runs_when_the_host_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path, deferred=True)
    runtime = bench.runtime
    given, taken = (runtime.pinned(128).view(np.int32), runtime.pinned(128).view(np.int32))
    memory, output = runtime.allocate(128), runtime.allocate(128)
    given[:] = 1
    runtime.upload(memory, 0, given)
    runtime.launch(bench.launch(ADD_COUNT, memory, output, count=1))
    runtime.download(taken, output, 0)
    del output  # is kept until the launch has run
    given[:] = 2  # a mistake: the copy has not read it yet
    assert set(taken.tolist()) == {-1}
    runtime.synchronize()
    assert set(taken.tolist()) == {3}


# A slow kernel, and one that overlaps it: reads `in` early, waits, and adds what the slow one wrote to `out`.
DOUBLE = kernel("((i32*)args.out)[thread_index()] = ((const i32*)args.in)[thread_index()] * 2;")
OVERLAPPING = """
{early}
if ({some}) wait_for_previous_kernel();
block_barrier();
{late}
"""
READ, WRITE = (
    "const i32 value = ((const i32*)args.in)[thread_index()];",
    "((i32*)args.out)[thread_index()] += value;",
)


def _overlapping(launch: Launch) -> Launch:
    """The launch, which may begin before the kernel before it has ended."""
    return Launch(launch.kernel, launch.grid, launch.threads, launch.args, overlaps=True)


def _run_overlapping(bench: Bench, *, written: bool, **parts: str) -> NDArray[np.int32]:
    """Double `in` to `out`; then add `in` to `out`, or (``written``) `out`, which the kernel before wrote."""
    runtime = bench.runtime
    memory = bench.upload(np.arange(64, dtype=np.int32))
    output = runtime.allocate(256)
    body = OVERLAPPING
    for name in ("early", "some", "late"):
        body = body.replace(f"{{{name}}}", parts.get(name, "true" if name == "some" else ""))
    first = bench.launch(DOUBLE, memory, output, threads=64)
    second = bench.launch(kernel(body), output if written else memory, output, threads=64)

    def step() -> None:
        runtime.launch(first)
        runtime.launch(_overlapping(second))

    runtime.capture(step).launch()
    result = np.zeros(64, np.int32)
    runtime.download(result, output, 0)
    runtime.synchronize()
    return result


@pytest.mark.parametrize("some", ["true", "thread_index() == 40"])
def test_overlapping_kernel_reads_early_what_no_kernel_writes(bench: Bench, some: str) -> None:
    result = _run_overlapping(bench, written=False, early=READ, late=WRITE, some=some)
    np.testing.assert_array_equal(result, np.arange(64) * 3)


def test_overlapping_kernel_reads_late_what_the_one_before_wrote(bench: Bench) -> None:
    result = _run_overlapping(bench, written=True, late=READ + WRITE)
    np.testing.assert_array_equal(result, np.arange(64) * 4)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"early": READ, "late": WRITE}, "which a kernel before it writes, without wait_for_previous_kernel"),
        ({"early": "((i32*)args.out)[0] = 1;"}, "without wait_for_previous_kernel"),
        ({"some": "false", "late": "args.count;"}, "overlaps, but does not call wait_for_previous_kernel"),
    ],
)
def test_early_accesses_of_overlapping_kernels_are_found(
    bench: Bench, parts: dict[str, str], message: str
) -> None:
    with pytest.raises(DeviceError, match=f"kernel test, .*{message}"):
        _run_overlapping(bench, written=True, **parts)


def test_what_an_overlapping_kernel_does_not_use_is_read_by_the_host(bench: Bench) -> None:
    runtime = bench.runtime
    memory = bench.upload(np.arange(64, dtype=np.int32))
    first, second = runtime.allocate(256), runtime.allocate(256)
    runtime.launch(bench.launch(DOUBLE, memory, first, threads=64))
    body = kernel("wait_for_previous_kernel();\n((i32*)args.out)[thread_index()] = 7;")
    launch = bench.launch(body, memory, second, threads=64)
    runtime.launch(_overlapping(launch))
    result = np.zeros(64, np.int32)
    runtime.download(result, first, 0)
    np.testing.assert_array_equal(result, np.arange(64) * 2)
    runtime.copy(second, first, 256, runtime)
    runtime.download(result, second, 0)
    np.testing.assert_array_equal(result, np.arange(64) * 2)


@pytest.mark.parametrize("block", [0, 1])
def test_a_write_beside_a_memory_that_the_next_block_must_not_use_is_found(bench: Bench, block: int) -> None:
    runtime = bench.runtime
    memory, output = bench.upload(np.arange(64, dtype=np.int32)), runtime.allocate(256)
    body = f"wait_for_previous_kernel();\nif (block_x() == {block}) ((u8*)args.out)[-1] = 1;"
    launch = bench.launch(kernel(body), memory, output, blocks=2)
    with pytest.raises(DeviceError, match="a write beside a memory of 256 bytes"):
        runtime.launch(_overlapping(launch))


def test_a_timestamp_is_the_time_at_which_the_stream_reached_it() -> None:
    runtime = SimtRuntime(deferred=True)
    first, last = runtime.timestamp(), runtime.timestamp()
    with pytest.raises(DeviceError, match="is not known before the stream has reached it"):
        last.seconds_after(first)
    runtime.synchronize()
    assert last.seconds_after(first) >= 0.0
    with pytest.raises(DeviceError, match="a timestamp is not allowed while a graph is captured"):
        runtime.capture(runtime.timestamp)  # type: ignore[arg-type] # what it returns is not used


def test_another_thread_may_wait_while_a_graph_is_captured() -> None:
    runtime = SimtRuntime()
    event = runtime.record()
    reached: list[bool] = []

    def wait_elsewhere() -> None:
        thread = threading.Thread(target=lambda: reached.append(event.wait(1.0)))
        thread.start()
        thread.join()

    runtime.capture(wait_elsewhere)
    assert reached == [True]
    with pytest.raises(DeviceError, match="the wait for an event is not allowed while a graph is captured"):
        runtime.capture(lambda: reached.append(event.wait(1.0)))
