"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, NotFoundError, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend(name="example", probe=probe, open=open_device)]


def probe() -> Sequence[DeviceInfo]:
    """Return the devices of this machine. Import a toolkit here, not at the top."""
    from llmd_backend_example.device import describe

    return [describe()]


def open_device(name: str, _options: DeviceOptions) -> Device:
    """Open the device of that name. ``_options`` are the user's, such as `--threads`."""
    from llmd_backend_example.device import ExampleDevice

    if name != "example":
        raise NotFoundError(f"this plugin has no device {name!r}", hint="its device is `example`")
    return ExampleDevice()
