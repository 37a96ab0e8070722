"""The three small cases that a device must pass before the daemon uses it."""

from __future__ import annotations

from llmd.api import Device
from llmd.testing.conformance import all_cases, check_device

_NAMES = ("linear/f32", "attention/window-f32", "program/window-f32-kv-f32")


def try_device(device: Device) -> list[str]:
    """Return a sentence for each small case that the device fails."""
    cases = tuple(case for case in all_cases() if case.name in _NAMES)
    return [f"{result.name}: {result.problem}" for result in check_device(device, cases) if result.problem]
