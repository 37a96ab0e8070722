"""The devices that may get parts of a model, with their rates and the memory that is left for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from llmd.api.device import HOST_MEMORY, DeviceInfo, DeviceProfile
from llmd.api.errors import PluginError
from llmd.api.machine import available_bytes, total_bytes
from llmd.host.benchmarks import Benchmarks
from llmd.host.devices import DeviceState, ranked
from llmd.host.plugin_host import PluginHost

Room = Callable[[str, int], int]
"""Returns the bytes of a memory that a model may take, given its `DeviceInfo.memory_id` and its size."""


def free_room(max_memory: int | None = None) -> Room:
    """Return how many bytes of each memory a model may take if it is the only one of llmd.

    ``max_memory`` limits main memory.
    """

    def room(memory_id: str, memory_bytes: int) -> int:
        if memory_id != HOST_MEMORY:
            return memory_bytes
        available = available_bytes()
        return min(available, max_memory or available)

    return room


class Candidate(msgspec.Struct, frozen=True):
    """A device that may get parts of a model."""

    info: DeviceInfo
    profile: DeviceProfile
    free_bytes: int
    """Bytes of its memory that the model may take."""
    host_free_bytes: int = 0
    """Bytes of main memory that the model may take."""


def are_rivals(one: Candidate, other: Candidate) -> bool:
    """Whether a model may have only one of two devices, because both are the same card."""
    return one.info.kind != other.info.kind and one.info.memory_id == other.info.memory_id != HOST_MEMORY


class MachineDevices:
    """The devices of this machine that a load may use. Used by one thread, as the plugin host is."""

    def __init__(self, host: PluginHost, benchmarks: Benchmarks, room: Room) -> None:
        self._host = host
        self._benchmarks = benchmarks
        self._room = room

    def usable(self, names: Sequence[str] = ()) -> list[DeviceState]:
        """Return the named devices in this order; without names, all usable ones, best first.

        Raises:
            NotFoundError: there is no such device, or no usable one.
            PluginError: a named device cannot be used; the message says why.
        """
        if names:
            return [self._host.choose_device(name) for name in names]
        return ranked(self._host.devices()) or [self._host.choose_device("auto")]

    def info(self, name: str) -> DeviceInfo:
        """Return the device of that name.

        Raises:
            NotFoundError: there is no such device.
            PluginError: it cannot be used; the message says why.
        """
        return self._host.choose_device(name).info

    def room(self, device: DeviceState) -> int:
        """Return the bytes of its memory that a model may take."""
        return self._room(device.info.memory_id, device.info.memory_bytes)

    def main_memory_room(self) -> int:
        """Return the bytes of main memory that a model may take."""
        return self._room(HOST_MEMORY, total_bytes())

    def measured(self, devices: Sequence[DeviceState]) -> list[Candidate]:
        """Return those whose rates are known."""
        known = [(device, self._benchmarks.known(device)) for device in devices]
        return [self._candidate(device, profile) for device, profile in known if profile]

    def measure(self, devices: Sequence[DeviceState]) -> list[Candidate]:
        """Return them with their rates; measure those whose rates are not known, which takes seconds for
        each. A device that cannot be measured is left out.
        """
        found = []
        for device in devices:
            try:
                profile = self._benchmarks.known(device) or self._benchmarks.measure(device)
            except PluginError:
                continue
            found.append(self._candidate(device, profile))
        return found

    def _candidate(self, device: DeviceState, profile: DeviceProfile) -> Candidate:
        return Candidate(device.info, profile, self.room(device), self.main_memory_room())
