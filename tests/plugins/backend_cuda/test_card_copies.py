"""The stream of copies of a card, on a stand-in for CuPy's bindings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd_backend_cuda.cupy_runtime import CupyRuntime
from llmd_backend_cuda.driver import Driver
from llmd_backend_cuda.kernel_cache import KernelCache
from tests.cuda.host_cuda import HostCuda, build_driver


@pytest.fixture
def api() -> HostCuda:
    return HostCuda()


@pytest.fixture
def runtime(api: HostCuda, tmp_path: Path) -> CupyRuntime:
    return CupyRuntime(0, KernelCache((9, 0), tmp_path), api=api, driver=Driver(str(build_driver(tmp_path))))


def test_copies_have_a_stream_of_their_own_which_is_freed(runtime: CupyRuntime, api: HostCuda) -> None:
    assert list(api.alive.values()) == ["stream"]
    copies = runtime.copy_stream()
    assert list(api.alive.values()) == ["stream", "stream"]
    copied = copies.record()
    assert api.recorded_in[-1] != runtime._stream.value
    assert copied.wait(1.0)
    del copies, copied
    assert list(api.alive.values()) == ["stream"]


def test_streams_wait_for_points_of_each_other(runtime: CupyRuntime, api: HostCuda) -> None:
    copies = runtime.copy_stream()
    mine, other = runtime._stream.value, copies._stream.value
    computed, copied = runtime.record(), copies.record()
    copies.wait_for(computed)
    runtime.wait_for(copied)
    assert api.waits == [(other, computed.value), (mine, copied.value)]


def test_pinned_arrays_are_copied(runtime: CupyRuntime) -> None:
    copies, memory = runtime.copy_stream(), runtime.allocate(16)
    sent, got = runtime.pinned(8), runtime.pinned(16)
    sent[:] = range(8)
    copies.upload(memory, 4, sent)
    runtime.download(got, memory, 0)
    assert got.tolist() == [255] * 4 + list(range(8)) + [255] * 4


def test_other_arrays_are_refused(runtime: CupyRuntime) -> None:
    copies, memory = runtime.copy_stream(), runtime.allocate(16)
    with pytest.raises(ValueError, match="only pinned arrays"):
        copies.upload(memory, 0, np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="not in 16 bytes"):
        copies.upload(memory, 9, runtime.pinned(8))


def test_a_point_may_have_its_time(runtime: CupyRuntime, api: HostCuda) -> None:
    copies = runtime.copy_stream()
    begin = copies.timestamp()
    api.now_s = 0.25
    assert copies.timestamp().seconds_after(begin) == 0.25
