"""One of two plugins that claim the same backend."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import Backend, Device, DeviceInfo, DeviceOptions, hookimpl

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend("twin", probe=probe, open=open_device)]


def probe() -> Sequence[DeviceInfo]:
    return []


def open_device(name: str, options: DeviceOptions) -> Device:
    raise AssertionError(f"no device {name} was announced")
