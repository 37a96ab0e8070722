"""What is known of the devices of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from llmd.api.device import DeviceInfo
from llmd.host.names import PluginName
from llmd.host.states import Failure


class DeviceState(msgspec.Struct, frozen=True):
    """A device that a probe found. Where ``ok`` is false, ``reason`` says why it is not used and ``fix`` what helps."""

    info: DeviceInfo
    backend: str
    plugin: PluginName
    ok: bool
    reason: str = ""
    fix: str = ""


class FailedBackend(msgspec.Struct, frozen=True):
    """A backend whose devices are not known, because its plugin failed before it could name them.

    ``name`` is the plugin's own where it failed before it could say which backends it has.
    """

    name: str
    plugin: PluginName
    failure: Failure


def unique_names(devices: Iterable[DeviceState]) -> tuple[DeviceState, ...]:
    """The devices, the second usable one of each name set aside. One that cannot be used takes no name from another."""
    owners: dict[str, DeviceState] = {}
    return tuple(
        _claimed(device, owners.setdefault(device.info.name, device)) if device.ok else device
        for device in devices
    )


def named(name: str, devices: Iterable[DeviceState]) -> DeviceState | None:
    """The device of that name: the usable one, else the first that says why it is not."""
    return min((one for one in devices if one.info.name == name), key=lambda one: not one.ok, default=None)


def best(devices: Sequence[DeviceState]) -> DeviceState | None:
    """The usable device with the highest score; the first of several."""
    return max((device for device in devices if device.ok), key=lambda one: one.info.score, default=None)


def _claimed(device: DeviceState, owner: DeviceState) -> DeviceState:
    if owner is device:
        return device
    mine, theirs = device.plugin.distribution, owner.plugin.distribution
    return msgspec.structs.replace(
        device,
        ok=False,
        reason=f"{theirs} already has a device {device.info.name!r}; {mine} offers another",
        fix=f"report it to the authors of {mine}" if mine == theirs else f"uninstall {theirs} or {mine}",
    )
