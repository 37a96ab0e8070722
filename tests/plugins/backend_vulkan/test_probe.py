"""Devices are described, and unusable ones say why."""

from __future__ import annotations

import sys

import msgspec
import pytest

from llmd.api import DeviceError, NotFoundError
from llmd_backend_vulkan import probe as probing
from llmd_backend_vulkan.probe import device_of, find_devices, probe, why_unsuited
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.plugins.backend_vulkan.test_vulkan import CARD


def test_the_device_of_the_processor_is_usable(physical: PhysicalDevice) -> None:
    found = {info.name: info for info in probe()}
    info = found[f"vulkan:{physical.index}"]
    assert info.reason == ""
    assert info.score == 1
    assert "llvmpipe" in info.description


def test_a_device_that_differs_from_the_reference_is_refused(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "difference", lambda _arena: "its results differ")
    info = next(info for info in probe() if info.name == f"vulkan:{physical.index}")
    assert (info.score, info.reason) == (0, "its results differ")
    assert "llvmpipe" in info.description


def test_a_device_that_fails_is_refused(physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_arena: object) -> str:
        raise DeviceError("it burns", hint="call the fire brigade")

    monkeypatch.setattr(probing, "difference", fail)
    info = next(info for info in probe() if info.name == f"vulkan:{physical.index}")
    assert (info.score, info.reason) == (0, "it burns: call the fire brigade")


@pytest.mark.usefixtures("physical")
def test_without_kompute_the_reason_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kp", None)
    (info,) = probe()
    assert info.score == 0
    assert f"{sys.executable} -m llmd_backend_vulkan.build_kompute" in info.reason


def test_without_a_device_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        def devices(self) -> list[PhysicalDevice]:
            return []

        def close(self) -> None:
            pass

    monkeypatch.setattr(probing, "Loader", Empty)
    (info,) = probe()
    assert info.score == 0
    assert "vulkaninfo" in info.reason


@pytest.mark.usefixtures("physical")
def test_devices_are_found_by_name() -> None:
    assert [device_of(f"vulkan:{device.index}").uuid for device in find_devices()] == [
        device.uuid for device in find_devices()
    ]
    with pytest.raises(NotFoundError, match="vulkan:99"):
        device_of("vulkan:99")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"version": (1, 0)}, "Vulkan 1.0"),
        ({"most_invocations": 128}, "work groups"),
        ({"most_constant_bytes": 64}, "push constants"),
    ],
)
def test_old_and_small_devices_are_refused(changes: dict[str, object], reason: str) -> None:
    found = why_unsuited(msgspec.structs.replace(CARD, **changes))
    assert reason in found
    assert bool(reason) == bool(found)
