"""The few small cases that a device must pass before the daemon uses it."""

from __future__ import annotations

from llmd.api import Device, DeviceInfo
from llmd.testing.conformance import all_cases, cases_for, check_device
from llmd.testing.workload import Workload


def try_device(device: Device) -> list[str]:
    """Return a sentence for each small case that the device fails."""
    results = check_device(device, small_cases(device.info))
    return [f"{result.name}: {result.problem}" for result in results if result.problem]


def small_cases(info: DeviceInfo) -> tuple[Workload, ...]:
    """Return a matrix product, attention and a whole program, if the device claims them."""
    names = {"linear/f32"}
    for kv_dtype in info.kv_dtypes[:1]:
        names |= {f"attention/window-{kv_dtype}", f"program/window-f32-kv-{kv_dtype}"}
    return cases_for(info, tuple(case for case in all_cases() if case.name in names))
