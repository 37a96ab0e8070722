"""Which Vulkan devices this machine has, and why they cannot be used if they cannot."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import DeviceError, DeviceInfo, LlmdError, NotFoundError
from llmd_backend_vulkan.device import describe, device_name
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.runtime import Runtime, kompute
from llmd_backend_vulkan.self_test import difference
from llmd_backend_vulkan.vulkan import Loader, PhysicalDevice

OLDEST_VERSION = (1, 1)
"""The version of Vulkan that shaders are compiled for."""

_INVOCATIONS, _SHARED_BYTES, _CONSTANT_BYTES = 256, 16384, 128
"""What shaders need: threads of a work group, its shared memory, push constants."""


def probe() -> Sequence[DeviceInfo]:
    """Return all devices. If there is none, or none can be used, one device says why."""
    try:
        devices = find_devices()
        kompute()
    except DeviceError as error:
        return [unusable("vulkan:0", f"{error.message}: {error.hint}")]
    return [_tried(device) for device in devices]


def find_devices() -> Sequence[PhysicalDevice]:
    """Return the devices of all drivers, at least one.

    Raises:
        DeviceError: there is none, or no loader, or a driver is broken.
    """
    loader = Loader()
    try:
        devices = loader.devices()
    finally:
        loader.close()
    if not devices:
        raise DeviceError("no Vulkan driver finds a device", hint="see whether `vulkaninfo` lists one")
    return devices


def device_of(name: str) -> PhysicalDevice:
    """Return the device of a name such as ``vulkan:0``.

    Raises:
        NotFoundError: there is no such device.
        DeviceError: Vulkan cannot be used at all.
    """
    devices = {device_name(device): device for device in find_devices()}
    if name not in devices:
        known = " and ".join(f"`{one}`" for one in devices)
        raise NotFoundError(f"the Vulkan backend has no device {name!r}", hint=f"its devices: {known}")
    return devices[name]


def why_unsuited(device: PhysicalDevice) -> str:
    """Return why shaders cannot run on a device, in one sentence; empty if they can."""
    if device.version < OLDEST_VERSION:
        own, oldest = (".".join(map(str, version)) for version in (device.version, OLDEST_VERSION))
        return f"its driver has Vulkan {own}, and {oldest} is needed: update the driver"
    if device.most_invocations < _INVOCATIONS or device.shared_bytes < _SHARED_BYTES:
        return "its work groups are too small for the shaders"
    if device.most_constant_bytes < _CONSTANT_BYTES:
        return "it has too few push constants for the shaders"
    return ""


def unusable(name: str, reason: str, description: str = "") -> DeviceInfo:
    """Return a device that nothing can run on."""
    return DeviceInfo(
        name=name, kind="vulkan", score=0, memory_bytes=0, formats=(), kv_dtypes=(), ops=(),
        description=description, reason=reason,
    )  # fmt: skip


def _tried(device: PhysicalDevice) -> DeviceInfo:
    """Return a device, unusable if it does not compute what it should."""
    reason, name, queues = why_unsuited(device), device_name(device), False
    if not reason:
        try:
            runtime = Runtime(device, name)
            queues = runtime.has_additions
            reason = difference(Arena(runtime))
        except LlmdError as error:
            reason = f"{error.message}: {error.hint}"
    info = describe(device, queues=queues)
    return unusable(name, reason, info.description) if reason else info
