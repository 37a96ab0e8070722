"""What Vulkan says of the devices of this machine, through its loader alone: no Kompute, nothing is computed.

Kompute shows the names and the work-group limits of a device. Its subgroup size, its free memory, the largest
range of a buffer and its place on the bus need an instance of our own. The offsets below are those of the
structures of ``vulkan_core.h`` on 64-bit systems.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from llmd.api import HOST_MEMORY, DeviceError

CPU, DISCRETE, INTEGRATED, VIRTUAL = 4, 2, 1, 3
"""Values of ``VkPhysicalDeviceType``."""

_VERSION_1_1 = 1 << 22 | 1 << 12
_SUCCESS = 0
_INCOMPATIBLE_DRIVER = -9

# Values of VkStructureType.
_APPLICATION_INFO, _INSTANCE_INFO = 0, 1
_PROPERTIES_2 = 1000059001
_MEMORY_PROPERTIES_2 = 1000059006
_SUBGROUP = 1000094000
_DRIVER = 1000196000
_PCI = 1000212000
_BUDGET = 1000237000
_ID = 1000071004
_MAINTENANCE_3 = 1000168000

_ROUNDING = 64 << 20
"""Bytes by which the estimates of drivers may be wrong."""

_HEADER = 16  # sType and pNext
_MOST_HEAPS = 16
_DEVICE_LOCAL = 1
_COMPUTE = 2
_WANTED_EXTENSIONS = ("VK_EXT_memory_budget", "VK_EXT_pci_bus_info", "VK_KHR_driver_properties")


class QueueFamily(msgspec.Struct, frozen=True):
    """Queues of one kind."""

    flags: int
    """``VkQueueFlagBits``."""
    num_queues: int
    timestamp_bits: int
    """Bits of its timestamps that count; 0: it has none."""


class Heap(msgspec.Struct, frozen=True):
    """A kind of memory of a device."""

    num_bytes: int
    is_local: bool
    """It is the device's own."""
    budget_bytes: int | None = None
    """What this process may take in all; None if the driver does not say."""
    used_bytes: int | None = None
    """What this process has taken; None if the driver does not say."""

    @property
    def free_bytes(self) -> int | None:
        """What this process may still take; None if the driver does not say."""
        if self.budget_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.budget_bytes - self.used_bytes)


class PhysicalDevice(msgspec.Struct, frozen=True):
    """A device as its driver describes it."""

    index: int
    """Its place among the devices that the loader lists."""
    name: str
    kind: int
    """``VkPhysicalDeviceType``."""
    driver: str
    """Name and version of the driver, as far as it states them."""
    uuid: str
    """Identifies the hardware across restarts and drivers, in hexadecimal digits."""
    version: tuple[int, int]
    """Version of Vulkan."""
    pci: str
    """Address, such as ``0000:01:00.0``; empty if the driver does not say."""
    subgroup_size: int
    most_range_bytes: int
    """``maxStorageBufferRange``: most bytes of a buffer that a shader sees."""
    most_allocation_bytes: int
    """``maxMemoryAllocationSize``."""
    most_constant_bytes: int
    """``maxPushConstantsSize``."""
    shared_bytes: int
    """Shared memory of a work group."""
    most_groups: tuple[int, int, int]
    """``maxComputeWorkGroupCount``."""
    most_invocations: int
    """``maxComputeWorkGroupInvocations``."""
    heaps: tuple[Heap, ...]
    families: tuple[QueueFamily, ...]
    """By their index."""
    tick_s: float
    """Seconds of a tick of timestamps."""

    @property
    def queues(self) -> tuple[int, ...]:
        """Families of the queue that computes, and of a second one, if there is one, that copies meanwhile.

        Both are of one family, so that memory need not change its owner.
        """
        computing = [number for number, one in enumerate(self.families) if one.flags & _COMPUTE]
        double = [number for number in computing if self.families[number].num_queues > 1]
        return (double[0],) * 2 if double else tuple(computing[:1])

    @property
    def timestamp_bits(self) -> int:
        """Bits of the timestamps of its queues that count; 0: they have none."""
        return self.families[self.queues[0]].timestamp_bits if self.queues else 0

    @property
    def memory_bytes(self) -> int:
        """Bytes of the memory that weights are kept in."""
        return max((heap.num_bytes for heap in self._own_heaps), default=0)

    @property
    def free_bytes(self) -> int | None:
        """Bytes of that memory that are free; None if the driver does not say."""
        largest = max(self._own_heaps, key=lambda heap: heap.num_bytes, default=None)
        return None if largest is None else largest.free_bytes

    def spilled_bytes(self, taken: int) -> int:
        """Return how many of the ``taken`` bytes of its memory the driver keeps elsewhere, as far as known.

        A driver may let a process use more than its budget, and move the rest to main memory now and then; or
        it counts what it has moved to the heaps that are not the device's own.
        """
        uses = [(one.used_bytes, one.budget_bytes) for one in self._own_heaps]
        known = [(used, budget) for used, budget in uses if used is not None and budget is not None]
        if self.memory_id == HOST_MEMORY or not known or len(known) < len(uses):
            return 0
        beyond = sum(max(0, used - budget) for used, budget in known)
        elsewhere = taken - sum(used for used, _ in known)
        return max(beyond, elsewhere if elsewhere > _ROUNDING else 0)

    @property
    def memory_id(self) -> str:
        """`llmd.api.DeviceInfo.memory_id`."""
        if self.kind in {CPU, INTEGRATED}:
            return HOST_MEMORY
        return f"pci:{self.pci}" if self.pci else f"vulkan:{self.uuid}"

    @property
    def _own_heaps(self) -> Sequence[Heap]:
        return [heap for heap in self.heaps if heap.is_local]


class Loader:
    """An instance of Vulkan 1.1."""

    def __init__(self) -> None:
        """Make the instance.

        Raises:
            DeviceError: there is no loader, or no driver.
        """
        name = "vulkan-1" if sys.platform == "win32" else ctypes.util.find_library("vulkan")
        try:
            self._library = ctypes.CDLL(name or "libvulkan.so.1")
        except OSError as error:
            raise DeviceError(
                f"the Vulkan loader cannot be loaded: {error}",
                hint="install it, on Debian with `sudo apt-get install libvulkan1`",
            ) from error
        self._instance = self._make_instance()

    def devices(self) -> list[PhysicalDevice]:
        """Return all devices of all drivers.

        Raises:
            DeviceError: a driver failed.
        """
        return [self._describe(index, handle) for index, handle in enumerate(self._handles())]

    def close(self) -> None:
        """Destroy the instance."""
        if self._instance.value is not None:
            self._library.vkDestroyInstance(self._instance, None)
            self._instance = ctypes.c_void_p()

    def _make_instance(self) -> ctypes.c_void_p:
        application = _pack("<IxxxxQQIxxxxQIIxxxx", _APPLICATION_INFO, 0, 0, 0, 0, 0, _VERSION_1_1)
        info = _pack(
            "<IxxxxQIxxxxQIxxxxQIxxxxQ", _INSTANCE_INFO, 0, 0, ctypes.addressof(application), 0, 0, 0, 0
        )
        instance = ctypes.c_void_p()
        status = self._library.vkCreateInstance(info, None, ctypes.byref(instance))
        if status == _INCOMPATIBLE_DRIVER:
            raise DeviceError(
                "this machine has no Vulkan driver", hint="install the driver of its graphics card"
            )
        _check(status, "vkCreateInstance")
        return instance

    def _handles(self) -> Sequence[ctypes.c_void_p]:
        def listing(count: Any, handles: Any) -> int:
            return int(self._library.vkEnumeratePhysicalDevices(self._instance, count, handles))

        return [ctypes.c_void_p(handle) for handle in _enumerated(listing, ctypes.c_void_p, "devices")]

    def _describe(self, index: int, handle: ctypes.c_void_p) -> PhysicalDevice:
        extensions = self._extensions(handle)
        sizes = {_SUBGROUP: 16, _ID: 48, _MAINTENANCE_3: 16}
        if "VK_EXT_pci_bus_info" in extensions:
            sizes[_PCI] = 16
        if "VK_KHR_driver_properties" in extensions:
            sizes[_DRIVER] = 520
        chain = _Chain(_PROPERTIES_2, 824, sizes)
        self._library.vkGetPhysicalDeviceProperties2(handle, chain.first)
        own = chain.body(_PROPERTIES_2)
        version = struct.unpack_from("<I", own)[0]
        return PhysicalDevice(
            index=index,
            name=_text(own, 20, 256),
            kind=struct.unpack_from("<I", own, 16)[0],
            driver=_driver(chain) if _DRIVER in sizes else "",
            uuid=bytes(chain.body(_ID)[:16]).hex(),
            version=(version >> 22 & 0x7F, version >> 12 & 0x3FF),
            pci="{:04x}:{:02x}:{:02x}.{:x}".format(*struct.unpack_from("<4I", chain.body(_PCI)))
            if _PCI in sizes
            else "",
            subgroup_size=struct.unpack_from("<I", chain.body(_SUBGROUP))[0],
            most_range_bytes=struct.unpack_from("<I", own, 324)[0],
            most_allocation_bytes=struct.unpack_from("<Q", chain.body(_MAINTENANCE_3), 8)[0],
            most_constant_bytes=struct.unpack_from("<I", own, 328)[0],
            shared_bytes=struct.unpack_from("<I", own, 512)[0],
            most_groups=struct.unpack_from("<3I", own, 516),
            most_invocations=struct.unpack_from("<I", own, 528)[0],
            heaps=self._heaps(handle, has_budget="VK_EXT_memory_budget" in extensions),
            families=self._families(handle),
            tick_s=1e-9 * struct.unpack_from("<f", own, 720)[0],
        )

    def _families(self, handle: ctypes.c_void_p) -> tuple[QueueFamily, ...]:
        def listing(count: Any, properties: Any) -> int:
            self._library.vkGetPhysicalDeviceQueueFamilyProperties(handle, count, properties)
            return _SUCCESS

        entries = _enumerated(listing, ctypes.c_char * 24, "queues")
        return tuple(QueueFamily(*struct.unpack_from("<3I", bytes(entry))) for entry in entries)

    def _heaps(self, handle: ctypes.c_void_p, *, has_budget: bool) -> tuple[Heap, ...]:
        chain = _Chain(_MEMORY_PROPERTIES_2, 520, {_BUDGET: 16 * _MOST_HEAPS} if has_budget else {})
        self._library.vkGetPhysicalDeviceMemoryProperties2(handle, chain.first)
        own = chain.body(_MEMORY_PROPERTIES_2)
        count = struct.unpack_from("<I", own, 260)[0]
        found = [struct.unpack_from("<QI", own, 264 + 16 * number) for number in range(count)]
        budgets: Sequence[tuple[int | None, int | None]] = [(None, None)] * count
        if has_budget:
            numbers = struct.unpack_from(f"<{2 * _MOST_HEAPS}Q", chain.body(_BUDGET))
            budgets = [(numbers[i], numbers[_MOST_HEAPS + i]) for i in range(count)]
        return tuple(
            Heap(size, bool(flags & _DEVICE_LOCAL), *budget)
            for (size, flags), budget in zip(found, budgets, strict=True)
        )

    def _extensions(self, handle: ctypes.c_void_p) -> set[str]:
        """Return which of the wanted extensions a device has."""

        def listing(count: Any, properties: Any) -> int:
            call = self._library.vkEnumerateDeviceExtensionProperties
            return int(call(handle, None, count, properties))

        entries = _enumerated(listing, ctypes.c_char * 260, "extensions")
        names = {bytes(entry).partition(b"\0")[0].decode() for entry in entries}
        return names & set(_WANTED_EXTENSIONS)


class _Chain:
    """A structure of Vulkan and those that its ``pNext`` leads to."""

    def __init__(self, first: int, num_bytes: int, others: dict[int, int]) -> None:
        self._parts: dict[int, Any] = {}
        following = 0
        for kind, size in [*others.items(), (first, num_bytes)]:
            part = ctypes.create_string_buffer(_HEADER + size)
            struct.pack_into("<IxxxxQ", part, 0, kind, following)
            following = ctypes.addressof(part)
            self._parts[kind] = part
        self.first = self._parts[first]

    def body(self, kind: int) -> memoryview:
        """Return a structure without its header."""
        return memoryview(self._parts[kind])[_HEADER:]


def _driver(chain: _Chain) -> str:
    body = chain.body(_DRIVER)
    return " ".join(text for text in (_text(body, 4, 256), _text(body, 260, 256)) if text)


def _text(body: memoryview, offset: int, size: int) -> str:
    return bytes(body[offset : offset + size]).partition(b"\0")[0].decode(errors="replace")


def _pack(form: str, *values: int) -> Any:
    return ctypes.create_string_buffer(struct.pack(form, *values))


def _enumerated(listing: Callable[[Any, Any], int], kind: type[Any], what: str) -> Sequence[Any]:
    """Call a function of Vulkan that first returns a count, then that many entries."""
    count = ctypes.c_uint32()
    _check(listing(ctypes.byref(count), None), f"the number of {what}")
    entries = (kind * count.value)()
    if count.value:
        _check(listing(ctypes.byref(count), entries), f"the list of {what}")
    return list(entries)


def _check(status: int, what: str) -> None:
    if status != _SUCCESS:
        raise DeviceError(f"Vulkan failed: {what} gave {status}", hint="see whether `vulkaninfo` works")
