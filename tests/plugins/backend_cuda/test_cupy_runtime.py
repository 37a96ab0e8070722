"""The runtime on main memory instead of a card; on the first card, too, if there is one."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmd.api import DeviceError, DeviceLostError, DeviceMemoryError, MemoryBudgetError
from llmd_backend_cuda import cupy_runtime
from llmd_backend_cuda.cupy_runtime import CupyRuntime
from llmd_backend_cuda.driver import Driver
from llmd_backend_cuda.kernel_cache import KernelCache
from llmd_backend_cuda.runtime import KernelSpec, Launch
from tests.cuda.host_cuda import ILLEGAL_ADDRESS, MEMORY_BYTES, OUT_OF_MEMORY, HostCuda, build_driver

SPEC = KernelSpec.of("elementwise", "add_rows")


class Args(ctypes.Structure):
    """What the stand-in for the driver reads of a parameter."""

    _fields_ = (("x", ctypes.c_float), ("n", ctypes.c_int))


class AddArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/elementwise.cu``."""

    _fields_ = (
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("threshold", ctypes.c_float),
    )


def num_cards() -> int:
    """Return the number of cards of this machine."""
    with contextlib.suppress(RuntimeError):
        from cupy_backends.cuda.api import runtime

        return int(runtime.getDeviceCount())
    return 0


PLACES = ["host", *(["card"] if num_cards() else [])]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    """Compiled kernels that all tests of this module share."""
    return KernelCache((9, 0), tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def api() -> HostCuda:
    return HostCuda()


@pytest.fixture
def host(api: HostCuda, library: Path, cache: KernelCache) -> Iterator[CupyRuntime]:
    """A runtime on main memory."""
    fail(library, 0)
    runtime = CupyRuntime(3, cache, api=api, driver=Driver(str(library)))
    yield runtime
    fail(library, 0)
    runtime.close()


@pytest.fixture(params=PLACES)
def runtime(request: pytest.FixtureRequest) -> CupyRuntime:
    return request.getfixturevalue("host") if request.param == "host" else CupyRuntime(0)


def fail(library: Path, status: int) -> None:
    """Let the driver fail with a status."""
    ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "status").value = status


def seen(library: Path) -> str:
    """Return the last launch, as the driver saw it."""
    text: bytes = (ctypes.c_char * 1024).in_dll(ctypes.CDLL(str(library)), "seen").value
    return text.decode()


def test_kernels_read_pinned_arrays_at_their_own_addresses(runtime: CupyRuntime) -> None:
    array = runtime.pinned(200)
    assert runtime.mapped_address(array[16:]) == array.ctypes.data + 16
    with pytest.raises(ValueError, match="pinned arrays only"):
        runtime.mapped_address(np.empty(200, np.uint8))


@pytest.mark.parametrize("pinned", [True, False])
def test_what_is_uploaded_is_downloaded(runtime: CupyRuntime, *, pinned: bool) -> None:
    memory = runtime.allocate(400)
    assert memory.num_bytes == 400
    assert memory.pointer % 16 == 0
    sent = runtime.pinned(200).view(np.float32) if pinned else np.empty(50, np.float32)
    got = runtime.pinned(160).view(np.float32) if pinned else np.empty(40, np.float32)
    sent[:] = range(50)
    runtime.fill_zero(memory)
    runtime.upload(memory, 200, sent)
    runtime.download(got, memory, 180)
    runtime.synchronize()
    assert got.tolist() == [0.0] * 5 + list(range(35))


def test_copies_stay_within_the_memory(runtime: CupyRuntime) -> None:
    memory = runtime.allocate(16)
    runtime.upload(memory, 16, np.empty(0, np.uint8))
    for offset, size in ((0, 17), (-1, 4), (15, 2)):
        with pytest.raises(ValueError, match="not in 16 bytes"):
            runtime.upload(memory, offset, np.zeros(size, np.uint8))
    with pytest.raises(ValueError, match="not C-contiguous"):
        runtime.download(np.zeros((2, 4), np.uint8).T, memory, 0)


def test_a_graph_repeats_what_was_recorded_with_what_is_there_by_then(runtime: CupyRuntime) -> None:
    memory = runtime.allocate(8)
    sent, got = runtime.pinned(8).view(np.int64), runtime.pinned(8).view(np.int64)
    sent[0], got[0] = 1, -1

    def run() -> None:
        runtime.upload(memory, 0, sent)
        runtime.download(got, memory, 0)

    graph = runtime.capture(run)
    runtime.synchronize()
    assert got[0] == -1
    for number in (5, 6):
        sent[0] = number
        graph.launch()
        assert runtime.record().wait(10)
        assert got[0] == number


def test_a_capture_that_fails_leaves_the_stream_usable(runtime: CupyRuntime) -> None:
    memory, array = runtime.allocate(8), np.full(1, 7)
    with pytest.raises(ValueError, match="only pinned arrays"):
        runtime.capture(lambda: runtime.upload(memory, 0, array))
    runtime.upload(memory, 0, array)
    got = np.zeros(1, np.int64)
    runtime.download(got, memory, 0)
    assert got[0] == 7


def test_too_much_memory_is_refused_with_what_is_free(runtime: CupyRuntime) -> None:
    with pytest.raises(MemoryBudgetError, match=r"has no 1024\.0 TiB of memory left; .* are free"):
        runtime.allocate(1 << 50)
    assert runtime.allocate(0).pointer


def test_freed_memory_is_free(runtime: CupyRuntime) -> None:
    before, size = runtime.free_bytes(), MEMORY_BYTES // 2
    memory = runtime.allocate(size)
    assert runtime.free_bytes() <= before - size
    del memory
    assert abs(runtime.free_bytes() - before) < size // 2  # of a card, other programs may use some


def test_everything_is_freed_even_after_the_runtime(host: CupyRuntime, api: HostCuda) -> None:
    kernel, memory, array, event = host.kernel(SPEC), host.allocate(8), host.pinned(8), host.record()
    graph = host.capture(lambda: None)
    host.launch(Launch(kernel, (1, 1, 1), 32, Args(0, 0)))
    host.close()
    host.close()
    del kernel, memory, event, graph
    view = array[2:4].view(np.uint16)
    del array
    assert sorted(map(str, api.alive.values())) == ["[255 255 255 255 255 255 255 255]", "stream"]
    del view
    assert list(api.alive.values()) == ["stream"]


def test_a_launch_reaches_the_driver(host: CupyRuntime, api: HostCuda, library: Path) -> None:
    args = Args(2.5, 1)
    launch = Launch(host.kernel(SPEC), (5, 6, 7), 96, args, 1000)
    host.launch(launch)
    (stream,) = (handle for handle, kind in api.alive.items() if kind == "stream")
    expected = f"grid 5 6 7 block 96 1 1 shared 1000 stream {stream:#x} function 0x22 extra (nil) x 2.5"
    assert seen(library) == f"{expected} n 1"
    args.n = 2
    host.launch(launch)
    assert seen(library) == f"{expected} n 2"
    assert host.num_processors == 7


def test_a_launch_may_overlap_with_the_one_before(host: CupyRuntime, library: Path) -> None:
    host.launch(Launch(host.kernel(SPEC), (1, 1, 1), 32, Args(0, 1), overlaps=True))
    assert seen(library).endswith("n 1 attribute 6 1")


def test_launches_that_are_made_for_each_step_do_not_pile_up(
    host: CupyRuntime, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupy_runtime, "_MOST_PREPARED", 3)
    kernel = host.kernel(SPEC)
    kept = Launch(kernel, (1, 1, 1), 32, Args(0, 1000))
    host.launch(kept)
    for number in range(20):
        host.launch(Launch(kernel, (1, 1, 1), 32, Args(0, number)))
        assert seen(library).endswith(f"n {number}")
    host.launch(kept)
    assert seen(library).endswith("n 1000")
    assert len(host._prepared) == 3


def test_shared_memory_above_the_default_is_allowed_once(host: CupyRuntime, library: Path) -> None:
    kernel = host.kernel(SPEC)
    host.launch(Launch(kernel, (1, 1, 1), 32, Args(0, 0), 60 << 10))
    assert ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "most_shared").value == 60 << 10
    with pytest.raises(DeviceError, match="cuda:3: CUDA_ERROR_TEST"):
        host.launch(Launch(kernel, (1, 1, 1), 32, Args(0, 0), 100 << 10))


def test_a_kernel_that_does_not_compile_fails_before_it_is_launched(host: CupyRuntime) -> None:
    host.kernel(SPEC)
    host.kernel(KernelSpec.of("elementwise", "add_rows", {"float": ")"}))
    with pytest.raises(DeviceError, match=r"elementwise\.cu does not compile for sm_90"):
        host.capture(lambda: pytest.fail("nothing is recorded"))
    host.synchronize()
    host.kernel(KernelSpec.of("elementwise", "absent"))
    with pytest.raises(DeviceError, match="cuda:3: CUDA_ERROR_TEST"):
        host.synchronize()


def test_calls_are_for_the_card_of_the_runtime(host: CupyRuntime, api: HostCuda) -> None:
    api.devices.clear()
    thread = threading.Thread(target=host.synchronize)
    thread.start()
    thread.join()
    assert set(api.devices) == {3}


def test_a_card_that_is_gone_is_named_and_nothing_is_freed(host: CupyRuntime, api: HostCuda) -> None:
    memory = host.allocate(8)
    event = host.record()
    api.status = ILLEGAL_ADDRESS
    with pytest.raises(DeviceLostError) as caught:
        event.wait(1)
    assert caught.value.devices == ("cuda:3",)
    assert "restart llmd" in caught.value.hint
    api.status = 0
    del memory, event
    host.close()
    assert sorted(map(str, api.alive.values())) == ["[255 255 255 255 255 255 255 255]", "event", "stream"]


def test_a_card_that_hangs_is_given_up(host: CupyRuntime, api: HostCuda) -> None:
    memory = host.allocate(8)
    error = host.lost("it did not finish within 1 s")
    assert str(error).startswith("cuda:3: it did not finish within 1 s")
    del memory
    assert len(api.alive) == 2


def test_a_step_without_memory_is_told_from_an_allocation(host: CupyRuntime, library: Path) -> None:
    launch = Launch(host.kernel(SPEC), (1, 1, 1), 32, Args(0, 0))
    host.launch(launch)
    fail(library, OUT_OF_MEMORY)
    with pytest.raises(DeviceMemoryError, match="cuda:3: CUDA_ERROR_TEST"):
        host.launch(launch)


def test_too_little_memory_for_kernels_is_refused(host: CupyRuntime, library: Path) -> None:
    """A stage that is made then does not fit, as one that has too little memory otherwise."""
    host.kernel(SPEC)
    fail(library, OUT_OF_MEMORY)
    with pytest.raises(MemoryBudgetError, match="no memory is left for kernels: cuda:3"):
        host.synchronize()


def test_without_a_driver_there_is_no_runtime(monkeypatch: pytest.MonkeyPatch, cache: KernelCache) -> None:
    monkeypatch.setattr(cupy_runtime, "Driver", functools.partial(Driver, "libabsent.so.1"))
    with pytest.raises(DeviceError, match=r"the NVIDIA driver is missing: libabsent\.so\.1"):
        CupyRuntime(0, cache, api=HostCuda())


if num_cards():  # CI has no card, and a skipped test fails there

    def test_a_kernel_runs_on_the_card(tmp_path: Path) -> None:
        runtime = CupyRuntime(0)
        a, b = (np.random.default_rng(seed).standard_normal(1001).astype(np.float32) for seed in (1, 2))
        places = [runtime.allocate(a.nbytes) for _ in range(3)]
        runtime.upload(places[0], 0, a)
        runtime.upload(places[1], 0, b)
        args = AddArgs(*(place.pointer for place in places), a.size, 2.0, 0.0)
        launch = Launch(runtime.kernel(SPEC), (-(-a.size // 1024), 1, 1), 256, args)
        got = runtime.pinned(a.nbytes).view(np.float32)

        def run() -> None:
            runtime.launch(launch)
            runtime.download(got, places[2], 0)

        run()
        runtime.synchronize()
        np.testing.assert_allclose(got, a + 2 * b, rtol=1e-6)
        got[:] = 0
        graph = runtime.capture(run)
        runtime.upload(places[0], 0, -a)
        graph.launch()
        assert runtime.record().wait(10)
        np.testing.assert_allclose(got, -a + 2 * b, rtol=1e-6)


def test_a_timestamp_has_a_time_and_a_record_has_none(runtime: CupyRuntime) -> None:
    first, last = runtime.timestamp(), runtime.timestamp()
    assert last.wait(60.0)
    assert 0.0 <= last.seconds_after(first) < 60.0
    plain = runtime.record()
    assert plain.wait(60.0)
    with pytest.raises((DeviceError, KeyError)):
        plain.seconds_after(first)


@pytest.fixture
def second(api: HostCuda, library: Path, cache: KernelCache) -> Iterator[CupyRuntime]:
    """Another card, with the same bindings."""
    runtime = CupyRuntime(4, cache, api=api, driver=Driver(str(library)))
    yield runtime
    runtime.close()


def test_peers_copy_from_card_to_card(host: CupyRuntime, second: CupyRuntime, api: HostCuda) -> None:
    source, target = host.allocate(64), second.allocate(64)
    host.upload(source, 0, np.arange(64, dtype=np.uint8))
    second.wait_for(host.record())
    assert second.reads(host)
    assert second.reads(second)
    second.copy(target, source, 48, host)
    got = np.zeros(64, np.uint8)
    second.download(got, target, 0)
    assert got[:48].tolist() == list(range(48))
    assert (api.peer_copies, api.enabled) == ([(4, 3)], [3])
    with pytest.raises(ValueError, match="no 65 bytes"):
        second.copy(target, source, 65, host)


def test_cards_that_are_no_peers_do_not_read_each_other(
    host: CupyRuntime, second: CupyRuntime, api: HostCuda
) -> None:
    api.is_peer = 0
    assert not second.reads(host)
    assert api.enabled == []


def test_access_that_an_earlier_runtime_enabled_stays(
    host: CupyRuntime, second: CupyRuntime, api: HostCuda
) -> None:
    api.enabled.append(3)
    assert second.reads(host)


def test_a_call_for_two_cards_names_the_one_that_is_gone(
    host: CupyRuntime, second: CupyRuntime, api: HostCuda
) -> None:
    event, memory = host.record(), host.allocate(8)
    target = second.allocate(8)
    api.status = ILLEGAL_ADDRESS
    with pytest.raises(DeviceLostError, match="cuda:3"):
        second.wait_for(event)
    with pytest.raises(DeviceLostError, match="cuda:3"):
        second.copy(target, memory, 8, host)
    api.status = 0
    second.synchronize()
