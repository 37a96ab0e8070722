"""What a device claims, and what it measures."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api import DeviceOptions
from llmd_backend_vulkan.device import VulkanDevice, describe, unused_bytes
from llmd_backend_vulkan.vulkan import INTEGRATED, PhysicalDevice
from tests.plugins.backend_vulkan.test_step_memory import program
from tests.plugins.backend_vulkan.test_vulkan import CARD

CPU_SCORE = 50
"""Of the CPU backend."""


def test_a_card_is_preferred_to_the_processor_and_cuda_to_vulkan() -> None:
    assert CPU_SCORE < describe(CARD).score < 100


def test_a_device_of_the_processor_is_never_preferred_to_the_cpu_backend(physical: PhysicalDevice) -> None:
    assert 0 < describe(physical).score < CPU_SCORE
    assert 0 < describe(msgspec.structs.replace(CARD, kind=INTEGRATED)).score < CPU_SCORE


def test_a_card_is_described() -> None:
    info = describe(CARD)
    assert info.name == "vulkan:1"
    assert info.description == "card, 24.0 GiB, maker 1.2"
    assert info.memory_id == "pci:0000:41:00.0"
    assert info.row_exact
    assert info.queues
    assert not describe(CARD, queues=False).queues


def test_a_device_checks_programs_and_measures(device: VulkanDevice) -> None:
    assert device.check(program()) == []
    assert 0 < device.free_bytes() <= device.info.memory_bytes
    assert device.read_rate(0.0) > 0


def test_free_memory_is_what_nobody_has_taken(physical: PhysicalDevice) -> None:
    device = VulkanDevice(physical, DeviceOptions())
    assert 0 < device.free_bytes() <= physical.memory_bytes
    device.close()
    silent, telling = (
        msgspec.structs.replace(
            physical, heaps=tuple(msgspec.structs.replace(one, free_bytes=free) for one in physical.heaps)
        )
        for free in (None, 8192)
    )
    assert unused_bytes(silent, physical.memory_bytes - 4096) == 4096
    assert unused_bytes(telling, physical.memory_bytes - 4096) == telling.free_bytes


def test_a_closed_device_is_not_used(physical: PhysicalDevice) -> None:
    device = VulkanDevice(physical, DeviceOptions())
    device.close()
    device.close()
    with pytest.raises(ValueError, match="closed"):
        device.free_bytes()
