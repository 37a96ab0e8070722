from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

import pytest

from llmd.api.device import DeviceInfo, DeviceProfile
from llmd.api.errors import PluginError
from llmd.host.benchmarks import Benchmarks
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.server.device_check import DeviceCheck


class Measurements:
    """Records what is measured."""

    def __init__(self, on_measure: Callable[[], None] = lambda: None) -> None:
        self.names: list[str] = []
        self._on_measure = on_measure

    def measure(self, device: DeviceState) -> DeviceProfile:
        self.names.append(device.info.name)
        self._on_measure()
        if device.info.name == "broken":
            raise PluginError("lost")
        return DeviceProfile(1.0, {}, {})


def device(name: str, *, ok: bool = True) -> DeviceState:
    info = DeviceInfo(name, "cpu", 1, 1, ("f32",), ("f32",), ())
    return DeviceState(info, name, PluginName(name, "m", "d", "1"), ok)


def check(measurements: Measurements, *devices: DeviceState) -> DeviceCheck:
    return DeviceCheck(cast("Benchmarks", measurements), devices)


def test_every_usable_device_is_measured_and_a_failure_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    measurements = Measurements()
    checking = check(measurements, device("a"), device("broken"), device("unusable", ok=False), device("b"))
    assert checking.join()
    assert measurements.names == ["a", "broken", "b"]
    assert "device_not_measured" in caplog.text


def test_nothing_waits_for_it_and_it_begins_no_other_device_once_stopped() -> None:
    measuring, release = threading.Event(), threading.Event()

    def on_measure() -> None:
        measuring.set()
        release.wait()

    measurements = Measurements(on_measure)
    checking = check(measurements, device("a"), device("b"))
    measuring.wait()
    checking.stop()
    assert not checking.join(0)
    release.set()
    assert checking.join()
    assert measurements.names == ["a"]
