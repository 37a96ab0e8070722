"""What a device claims, and what it measures."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api import DeviceOptions, SpillingDevice
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.device import VulkanDevice, describe, unused_bytes
from llmd_backend_vulkan.vulkan import DISCRETE, INTEGRATED, Heap, PhysicalDevice
from tests.plugins.backend_vulkan.test_stage import small_model
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
            physical,
            heaps=tuple(
                msgspec.structs.replace(one, budget_bytes=budget, used_bytes=0) for one in physical.heaps
            ),
        )
        for budget in (None, 8192)
    )
    assert unused_bytes(silent, physical.memory_bytes - 4096) == 4096
    assert unused_bytes(telling, physical.memory_bytes - 4096) == telling.free_bytes


def test_memory_that_the_driver_has_spilled_is_counted(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = msgspec.structs.replace(physical, kind=DISCRETE, pci="0000:01:00.0")
    device = VulkanDevice(card, DeviceOptions())
    assert isinstance(device, SpillingDevice)
    assert device.spilled_bytes() == 0  # this driver says nothing
    full = msgspec.structs.replace(
        card, heaps=(Heap(1 << 30, is_local=True, budget_bytes=1000, used_bytes=1500),)
    )
    monkeypatch.setattr(device._loader, "devices", lambda: [full])
    assert device.spilled_bytes() == 500
    weights = device.load(small_model(), RandomSource(), lambda _done, _total: None)
    taken = device._opened().num_bytes
    emptied = msgspec.structs.replace(
        full, heaps=(Heap(1 << 30, is_local=True, budget_bytes=1 << 30, used_bytes=0),)
    )
    assert emptied.spilled_bytes(taken + (64 << 20)) == taken + (64 << 20)
    weights.close()
    device.close()


def test_a_closed_device_is_not_used(physical: PhysicalDevice) -> None:
    device = VulkanDevice(physical, DeviceOptions())
    device.close()
    device.close()
    with pytest.raises(ValueError, match="closed"):
        device.free_bytes()
