"""Timestamps of the device are times of the host's clock."""

from __future__ import annotations

import time

import pytest

from llmd.api.spans import CLOCK_TOLERANCE_S
from llmd_backend_vulkan import step_clock
from llmd_backend_vulkan.runtime import Runtime
from llmd_backend_vulkan.step_clock import StepClock, signed
from llmd_backend_vulkan.vulkan import PhysicalDevice


def test_ticks_are_times_of_the_host(runtime: Runtime) -> None:
    clock = StepClock(runtime)
    before_s = time.perf_counter()
    found = clock.seconds(0, runtime.ticks(0))
    after_s = time.perf_counter()
    assert before_s - CLOCK_TOLERANCE_S <= found <= after_s + CLOCK_TOLERANCE_S


def test_the_clock_is_set_again_after_a_while(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StepClock(runtime)
    before = runtime.num_submissions
    clock.refresh()
    assert runtime.num_submissions == before
    monkeypatch.setattr(step_clock, "_ANCHOR_AGE_S", 0.0)
    clock.refresh()
    assert runtime.num_submissions > before


def test_without_additions_the_host_knows_the_times(physical: PhysicalDevice) -> None:
    plain = Runtime(physical, "vulkan:0", use_additions=False)
    StepClock(plain).refresh()
    assert plain.num_submissions == 0


@pytest.mark.parametrize(
    ("difference", "expected"), [(5, 5), (-5, -5), (5 - (1 << 36), 5), ((1 << 36) - 5, -5)]
)
def test_timestamps_wrap_around(difference: int, expected: int) -> None:
    assert signed(difference, 36) == expected
