"""Entry point of the reference backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Backend, NotFoundError, hookimpl

if TYPE_CHECKING:
    from llmd.api import Device, DeviceInfo, DeviceOptions

LLMD_API = 2


@hookimpl
def llmd_backends() -> Sequence[Backend]:
    return [Backend(name="reference", probe=_probe, open=_open)]


def _probe() -> Sequence[DeviceInfo]:
    from llmd.builtin.reference.device import probe

    return probe()


def _open(name: str, _options: DeviceOptions) -> Device:
    from llmd.builtin.reference.device import ReferenceDevice

    if name != "reference":
        raise NotFoundError(f"the reference backend has no device {name!r}", hint="its device is `reference`")
    return ReferenceDevice()
