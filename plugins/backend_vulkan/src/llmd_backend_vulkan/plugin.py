"""Entry point of the Vulkan backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [
        Backend(
            name="vulkan",
            probe=_probe,
            open=_open,
            driver="the Vulkan driver",
            probe_timeout_s=60.0,  # a driver may compile shaders for seconds
            isolated=True,
        )
    ]


def _probe() -> Sequence[DeviceInfo]:
    from llmd_backend_vulkan.probe import probe

    return probe()


def _open(name: str, options: DeviceOptions) -> Device:
    from llmd_backend_vulkan.device import VulkanDevice
    from llmd_backend_vulkan.probe import device_of

    return VulkanDevice(device_of(name), options)
