"""What is known of the devices of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from llmd.api.device import DeviceInfo
from llmd.host.names import PluginName


class DeviceState(msgspec.Struct, frozen=True):
    """A device that a probe found. Where ``ok`` is false, ``reason`` says why it is not used and ``mend`` what helps."""

    info: DeviceInfo
    backend: str
    plugin: PluginName
    ok: bool
    reason: str = ""
    mend: str = ""


def unique_names(devices: Iterable[DeviceState]) -> tuple[DeviceState, ...]:
    """The devices, the second of each name set aside."""
    owners: dict[str, PluginName] = {}
    return tuple(_claimed(device, owners.setdefault(device.info.name, device.plugin)) for device in devices)


def best(devices: Sequence[DeviceState]) -> DeviceState | None:
    """The usable device with the highest score; the first of several."""
    return max((device for device in devices if device.ok), key=lambda one: one.info.score, default=None)


def _claimed(device: DeviceState, owner: PluginName) -> DeviceState:
    if owner == device.plugin:
        return device
    return msgspec.structs.replace(
        device,
        ok=False,
        reason=f"{owner.distribution} already has a device {device.info.name!r}; {device.plugin.distribution} offers another",
        mend=f"uninstall {owner.distribution} or {device.plugin.distribution}",
    )
