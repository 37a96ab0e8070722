"""Devices that a test gives, as the devices of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from llmd.api.device import DeviceInfo, DeviceProfile
from llmd.api.errors import NotFoundError, PluginError
from llmd.engine.placement.candidates import MachineDevices, Room
from llmd.host.benchmarks import Benchmarks
from llmd.host.devices import DeviceState, best
from llmd.host.names import PluginName
from llmd.host.plugin_host import PluginHost

PLUGIN = PluginName("given", "given.plugin", "llmd-given", "1")


class GivenHost:
    """Has the given devices, all of them usable."""

    def __init__(self, infos: Sequence[DeviceInfo]) -> None:
        self._devices = tuple(DeviceState(info, info.kind, PLUGIN, ok=True) for info in infos)

    def devices(self) -> tuple[DeviceState, ...]:
        return self._devices

    def choose_device(self, name: str) -> DeviceState:
        for device in self._devices:
            if name in (device.info.name, *device.info.aliases):
                return device
        if name != "auto" or not self._devices:
            raise NotFoundError(f"there is no device {name!r}", hint="")
        found = best(self._devices)
        assert found
        return found


class GivenBenchmarks:
    """Knows the rates of some devices, and measures others as ``measurable`` says."""

    def __init__(self, known: Mapping[str, DeviceProfile], measurable: Mapping[str, DeviceProfile]) -> None:
        self._known = dict(known)
        self._measurable = measurable
        self.measured: list[str] = []

    def known(self, device: DeviceState) -> DeviceProfile | None:
        return self._known.get(device.info.name)

    def measure(self, device: DeviceState) -> DeviceProfile:
        self.measured.append(device.info.name)
        if device.info.name not in self._measurable:
            raise PluginError(f"device {device.info.name} was not measured", hint="")
        return self._measurable[device.info.name]


def machine_of(
    infos: Sequence[DeviceInfo],
    known: Mapping[str, DeviceProfile] | None = None,
    *,
    benchmarks: GivenBenchmarks | None = None,
    room: Room = lambda _memory_id, memory_bytes: memory_bytes,
) -> MachineDevices:
    """Return a machine with these devices; ``known`` are the rates by name of the device."""
    found = benchmarks or GivenBenchmarks(known or {}, {})
    return MachineDevices(cast("PluginHost", GivenHost(infos)), cast("Benchmarks", found), room)
