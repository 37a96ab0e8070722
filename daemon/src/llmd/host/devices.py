"""The state of this machine's devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from llmd.api.device import DeviceInfo
from llmd.host.names import PluginName
from llmd.host.states import Failure


class DeviceState(msgspec.Struct, frozen=True):
    """A device that a probe found."""

    info: DeviceInfo
    backend: str
    plugin: PluginName
    ok: bool
    """Whether it can be used."""
    reason: str = ""
    """Why it cannot be used."""
    fix: str = ""
    isolated: bool = False
    """`Backend.isolated`."""


class FailedBackend(msgspec.Struct, frozen=True):
    """A backend whose devices are not known because its plugin failed before it named them."""

    name: str
    """The backend; or the plugin, if it failed before it named its backends."""
    plugin: PluginName
    failure: Failure


def unique_names(devices: Iterable[DeviceState]) -> tuple[DeviceState, ...]:
    """Return the devices; of usable ones with the same name, all but the first become unusable.

    An unusable device does not claim its name.
    """
    owners: dict[str, DeviceState] = {}
    return tuple(
        _claimed(device, owners.setdefault(device.info.name, device)) if device.ok else device
        for device in devices
    )


def named(name: str, devices: Iterable[DeviceState]) -> DeviceState | None:
    """Return the device of that name or alias: the usable one, else the first unusable one; None if there is
    none.
    """
    found = (one for one in devices if name in (one.info.name, *one.info.aliases))
    return min(found, key=lambda one: not one.ok, default=None)


def best(devices: Sequence[DeviceState]) -> DeviceState | None:
    """Return the usable device with the highest score (the first of equals), or None."""
    return next(iter(ranked(devices)), None)


def ranked(devices: Sequence[DeviceState]) -> list[DeviceState]:
    """Return the usable devices, highest score first."""
    usable = (device for device in devices if device.ok)
    return sorted(usable, key=lambda one: one.info.score, reverse=True)


def _claimed(device: DeviceState, owner: DeviceState) -> DeviceState:
    if owner is device:
        return device
    mine, theirs = device.plugin.distribution, owner.plugin.distribution
    return msgspec.structs.replace(
        device,
        ok=False,
        reason=f"{theirs} already has a device {device.info.name!r}; {mine} offers another",
        fix=f"report it to the authors of {mine}"
        if mine == theirs
        else f"run `llmd plugins uninstall {mine}`, or uninstall {theirs} to use this one",
    )
