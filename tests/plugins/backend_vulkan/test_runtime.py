"""Dispatches run in order of their phases, with and without our additions to Kompute."""

from __future__ import annotations

import itertools
import time

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError, DeviceLostError, DeviceMemoryError, MemoryBudgetError
from llmd.api.spans import CLOCK_TOLERANCE_S
from llmd_backend_vulkan.commands import MOST_WORK, Buffer, Copy, Dispatch, Segment, Shader
from llmd_backend_vulkan.memory import copy
from llmd_backend_vulkan.runtime import Runtime, kompute
from llmd_backend_vulkan.step_clock import StepClock
from llmd_backend_vulkan.vulkan import PhysicalDevice

WORDS = 1000
STEPS = 5


@pytest.fixture(scope="module", params=[True, False], ids=["additions", "plain"])
def either(request: pytest.FixtureRequest, physical: PhysicalDevice) -> Runtime:
    """The device, with and without the additions."""
    return Runtime(physical, "vulkan:0", use_additions=request.param)


def chain(runtime: Runtime) -> tuple[Buffer, Buffer, list[list[Dispatch]]]:
    """Return the first and last buffer of copies that depend on each other, and their phases."""
    buffers = [runtime.host(WORDS), *(runtime.allocate(WORDS) for _ in range(STEPS)), runtime.host(WORDS)]
    pairs = itertools.pairwise(buffers)
    return buffers[0], buffers[-1], [[copy(source, 0, target, 0, WORDS)] for source, target in pairs]


def test_a_phase_sees_what_the_one_before_it_wrote(either: Runtime) -> None:
    source, target, phases = chain(either)
    recording = either.record(phases)
    for seed in (1, 2):
        source.view[:] = np.random.default_rng(seed).integers(0, 1 << 32, WORDS, np.uint32)
        recording.submit()
        assert recording.wait(60.0)
        assert np.array_equal(target.view, source.view)


def test_without_additions_each_phase_is_a_submission(either: Runtime) -> None:
    _, _, phases = chain(either)
    assert len(either.record(phases).submissions) == (1 if either.has_additions else STEPS + 1)


def test_submissions_are_bounded_by_their_work(runtime: Runtime) -> None:
    _, _, phases = chain(runtime)
    heavy = [[msgspec.structs.replace(one, work=MOST_WORK * 0.4)] for phase in phases for one in phase]
    assert len(runtime.record(heavy).submissions) == STEPS // 2 + 1


def test_a_phase_is_cut_into_submissions_too(runtime: Runtime) -> None:
    _, _, phases = chain(runtime)
    heavy = [msgspec.structs.replace(phases[0][0], work=MOST_WORK * 0.6)] * 3
    assert len(runtime.record([heavy, phases[1]]).submissions) == 3


def test_a_running_recording_is_not_submitted_again(runtime: Runtime) -> None:
    _, _, phases = chain(runtime)
    recording = runtime.record(phases)
    recording.submit()
    with pytest.raises(ValueError, match="is running"):
        recording.submit()
    assert recording.wait(60.0)
    assert recording.wait(0.0)


def test_dispatches_share_what_is_prepared_for_a_shader_and_its_buffers(runtime: Runtime) -> None:
    source, target = runtime.host(WORDS), runtime.host(WORDS)
    before = len(runtime._algorithms)
    runtime.run([[copy(source, 0, target, 0, 100)], [copy(source, 100, target, 100, 900)]])
    assert len(runtime._algorithms) == before + 1
    runtime.free(source)
    assert len(runtime._algorithms) == before


def test_times_of_segments_follow_each_other(either: Runtime) -> None:
    _, _, phases = chain(either)
    segments = [Segment(phases[:1], "copy", "first"), Segment(phases[1:], "device", "others")]
    recording = either.record_segments(segments, keeps_times=True)
    clock = StepClock(either)
    for _ in range(2):
        began_s = time.perf_counter()
        recording.submit()
        assert recording.wait(60.0)
        spans = recording.spans(clock.seconds)
        assert spans[0].name == "first"
        assert {(one.kind, one.name) for one in spans[1:]} == {("device", "others")}
        times = [began_s, *(at for one in spans for at in (one.start_s, one.end_s)), time.perf_counter()]
        assert all(one <= other + CLOCK_TOLERANCE_S for one, other in itertools.pairwise(times))
    assert either.record(phases).spans(clock.seconds) == []


def test_a_slot_is_filled_by_copies_before_it_is_read(runtime: Runtime) -> None:
    source, target, slot = runtime.host(2 * WORDS), runtime.host(2 * WORDS), runtime.slot()
    held = runtime.allocate(WORDS)
    source.view[:] = np.arange(2 * WORDS)
    segments = [
        Segment(
            [[copy(held, 0, target, at, WORDS)]], "device", "part", slot, (Copy(source, at, held, 0, WORDS),)
        )
        for at in (0, WORDS)
    ]
    # One slot, thus each part is read before the next one is copied.
    for one in segments:
        recording = runtime.record_segments([one], keeps_times=True)
        recording.submit()
        assert recording.wait(60.0)
        assert [span.kind for span in recording.spans(lambda _queue, ticks: float(ticks))] == [
            "weights",
            "device",
        ]
    assert np.array_equal(target.view, source.view)


def test_constants_select_a_variant_of_a_shader(runtime: Runtime) -> None:
    buffer = runtime.host(8)
    runtime.run([[Dispatch(Shader("fill_words"), (buffer,), (2, 3, 7), (1, 1, 1))]])
    assert buffer.view[2:5].tolist() == [7, 7, 7]


def test_a_buffer_is_not_larger_than_shaders_can_see(runtime: Runtime) -> None:
    with pytest.raises(MemoryBudgetError, match="at most"):
        runtime.allocate(runtime.most_words + 1)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vk::Queue::submit: ErrorDeviceLost", DeviceLostError),
        ("vk::Device::allocateMemory: ErrorOutOfDeviceMemory", DeviceMemoryError),
        ("vk::Device::createFence: ErrorOutOfHostMemory", DeviceMemoryError),
        ("vk::PhysicalDevice::createDevice: ErrorInitializationFailed", DeviceError),
    ],
)
def test_errors_of_vulkan_become_errors_of_llmd(
    physical: PhysicalDevice, text: str, kind: type[DeviceError]
) -> None:
    runtime = Runtime(physical, "vulkan:0")
    with pytest.raises(kind, match="vulkan:0") as raised, runtime._errors():
        raise RuntimeError(text)
    assert type(raised.value) is kind


def test_a_device_that_does_not_answer_is_lost(physical: PhysicalDevice) -> None:
    error = Runtime(physical, "vulkan:3").lost("it sleeps")
    assert error.devices == ("vulkan:3",)
    assert "it sleeps" in error.message


def test_a_device_in_another_place_is_refused(physical: PhysicalDevice) -> None:
    other = msgspec.structs.replace(physical, name="another card")
    with pytest.raises(DeviceError, match="Kompute opened llvmpipe"):
        Runtime(other, "vulkan:0")


def test_a_kompute_with_other_additions_is_used_without_them(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kompute(), "LLMD_ADDITIONS", 1)
    assert not Runtime(physical, "vulkan:0").has_additions
    assert "build_kompute`" in caplog.text
    caplog.clear()
    Runtime(physical, "vulkan:0", use_additions=False)
    assert caplog.text == ""
