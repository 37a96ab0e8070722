"""What llmd imports to learn what this plugin has. Only llmd.api and the standard library at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, NotFoundError, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 1


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend(name="example", probe=probe, open=open_device)]


def probe() -> Sequence[DeviceInfo]:
    """The devices of this machine. A toolkit would be imported here, not above."""
    from llmd_backend_example.device import describe

    return [describe()]


def open_device(name: str, _options: DeviceOptions) -> Device:
    """The device of that name, ready to load weights. Its options are what users asked for, such as `--threads`."""
    from llmd_backend_example.device import ExampleDevice

    if name != "example":
        raise NotFoundError(f"this plugin has no device {name!r}", hint="its device is `example`")
    return ExampleDevice()
