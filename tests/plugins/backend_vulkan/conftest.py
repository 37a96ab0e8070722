"""The Vulkan device of the processor, Mesa's lavapipe, for all tests of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from llmd.api import DeviceError, DeviceOptions
from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.probe import find_devices
from llmd_backend_vulkan.runtime import Runtime, kompute
from llmd_backend_vulkan.vulkan import CPU, PhysicalDevice

LIMIT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that use a device time to compile its shaders."""
    for item in items:
        if "backend_vulkan" in item.path.parts and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session")
def physical() -> PhysicalDevice:
    """The device that computes on the processor."""
    try:
        kompute()
        found = [device for device in find_devices() if device.kind == CPU]
    except DeviceError as error:
        pytest.skip(error.message)
    if not found:
        pytest.skip("needs mesa-vulkan-drivers")
    return found[0]


@pytest.fixture(scope="session")
def device(physical: PhysicalDevice) -> Iterator[VulkanDevice]:
    """The device, opened."""
    opened = VulkanDevice(physical, DeviceOptions())
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def plain_device(physical: PhysicalDevice) -> Iterator[VulkanDevice]:
    """The device through a Kompute without our additions."""
    opened = VulkanDevice(physical, DeviceOptions(), use_additions=False)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def runtime(physical: PhysicalDevice) -> Runtime:
    """The device through Kompute alone."""
    return Runtime(physical, "vulkan:0")


@pytest.fixture
def arena(runtime: Runtime) -> Arena:
    """Memory of the device."""
    return Arena(runtime)


@pytest.fixture(scope="session")
def check(device: VulkanDevice) -> Callable[[str], None]:
    """Run a case of the conformance suite."""
    cases = {case.name: case for case in cases_for(describe(device.physical))}

    def run(name: str) -> None:
        results = list(check_case(device, cases[name]))
        assert results
        assert [result for result in results if result.problem] == []

    return run
