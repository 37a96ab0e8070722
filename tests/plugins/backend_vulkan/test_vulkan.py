"""What drivers say of their devices."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api import HOST_MEMORY
from llmd_backend_vulkan.vulkan import CPU, DISCRETE, INTEGRATED, Heap, Loader, PhysicalDevice, QueueFamily

GIB = 1 << 30
CARD = PhysicalDevice(
    index=1,
    name="card",
    kind=DISCRETE,
    driver="maker 1.2",
    uuid="ab" * 16,
    version=(1, 3),
    pci="0000:41:00.0",
    subgroup_size=32,
    most_range_bytes=1 << 30,
    most_allocation_bytes=1 << 31,
    most_constant_bytes=256,
    shared_bytes=49152,
    most_groups=(65535, 65535, 65535),
    most_invocations=1024,
    heaps=(
        Heap(24 * GIB, is_local=True, budget_bytes=22 * GIB, used_bytes=2 * GIB),
        Heap(64 * GIB, is_local=False),
    ),
    families=(QueueFamily(7, 1, 64), QueueFamily(12, 2, 64), QueueFamily(14, 8, 36)),
    tick_s=1e-9,
)


def test_the_limits_of_a_device_are_within_what_vulkan_guarantees(physical: PhysicalDevice) -> None:
    assert physical.kind == CPU
    assert physical.version >= (1, 1)
    assert 1 <= physical.subgroup_size <= 128
    assert physical.most_range_bytes >= 1 << 27
    assert physical.most_allocation_bytes >= 1 << 30
    assert physical.most_constant_bytes >= 128
    assert physical.shared_bytes >= 16384
    assert min(physical.most_groups) >= 65535
    assert physical.memory_bytes > 0
    assert "llvmpipe" in physical.name
    assert len(bytes.fromhex(physical.uuid)) == 16
    assert physical.queues
    assert 36 <= physical.timestamp_bits <= 64
    assert 0 < physical.tick_s < 1e-6


def test_an_instance_can_be_closed_twice(physical: PhysicalDevice) -> None:
    loader = Loader()
    assert physical.name in {device.name for device in loader.devices()}
    loader.close()
    loader.close()


def test_memory_is_that_of_the_device() -> None:
    assert CARD.memory_bytes == 24 * GIB
    assert CARD.free_bytes == 20 * GIB


@pytest.mark.parametrize(
    ("changes", "memory_id"),
    [
        ({}, "pci:0000:41:00.0"),
        ({"pci": ""}, f"vulkan:{'ab' * 16}"),
        ({"kind": INTEGRATED}, HOST_MEMORY),
        ({"kind": CPU}, HOST_MEMORY),
    ],
)
def test_memory_is_identified_by_what_all_drivers_know(changes: dict[str, object], memory_id: str) -> None:
    assert msgspec.structs.replace(CARD, **changes).memory_id == memory_id


@pytest.mark.parametrize(
    ("budget", "used", "taken", "spilled"),
    [
        (None, None, 9 * GIB, 0),
        (8 * GIB, 7 * GIB, 7 * GIB, 0),
        (8 * GIB, 9 * GIB, 9 * GIB, GIB),
        (8 * GIB, 6 * GIB, 7 * GIB, GIB),
        (8 * GIB, 6 * GIB, 6 * GIB + (64 << 20), 0),  # drivers estimate
    ],
)
def test_memory_spills_beyond_the_budget_or_to_other_heaps(
    budget: int | None, used: int | None, taken: int, spilled: int
) -> None:
    own = Heap(24 * GIB, is_local=True, budget_bytes=budget, used_bytes=used)
    heaps = (own, Heap(64 * GIB, is_local=False, budget_bytes=64 * GIB, used_bytes=GIB))
    card = msgspec.structs.replace(CARD, heaps=heaps)
    assert card.spilled_bytes(taken) == spilled
    assert msgspec.structs.replace(card, kind=INTEGRATED).spilled_bytes(taken) == 0


def test_copies_have_a_queue_of_the_same_kind_if_there_is_one() -> None:
    single = CARD.families[:2]  # the second kind only copies
    assert CARD.queues == (2, 2)
    assert CARD.timestamp_bits == 36
    assert msgspec.structs.replace(CARD, families=single).queues == (0,)
    assert msgspec.structs.replace(CARD, families=()).timestamp_bits == 0
