"""What is known of this machine's devices while models run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from msgspec import Struct

from llmd.api.device import DeviceInfo, DeviceProfile
from llmd.host.devices import DeviceState
from llmd.host.plugin_host import PluginHost

Known = Callable[[DeviceState], DeviceProfile | None]
"""Returns the measured rates of a device; None if it was not measured."""

SLOW_BACKEND = "reference"
"""Nobody misses this backend: it is there to be compared with."""


class DeviceFacts(Struct, frozen=True):
    """By name of the device, or of a backend whose devices are not known."""

    read_bytes_per_s: Mapping[str, float] = {}
    """Measured bandwidth of memory."""
    are_measured: bool = False
    """Whether the rates of all usable devices are known."""
    unusable: Mapping[str, str] = {}
    """Why it cannot be used."""
    uses_threads: frozenset[str] = frozenset()
    """Devices that compute on processors of the host."""
    kv_bytes_per_s: Mapping[str, float] = {}
    """Measured rate of attention of one row."""
    infos: Mapping[str, DeviceInfo] = {}
    """Devices that can be used."""

    @classmethod
    def of(cls, host: PluginHost, known: Known) -> Self:
        """Return what the host knows. Probes devices that were not probed yet, and reads files."""
        devices = host.devices()
        profiles = {device.info.name: known(device) for device in devices if device.ok}
        unusable = {device.info.name: device.reason for device in devices if not device.ok}
        unusable |= {backend.name: backend.failure.reason for backend in host.failed_backends()}
        unusable.pop(SLOW_BACKEND, None)
        return cls(
            {name: profile.read_bytes_per_s for name, profile in profiles.items() if profile},
            all(profiles.values()),
            unusable,
            frozenset(device.info.name for device in devices if device.info.uses_threads),
            {name: profile.kv_bytes_per_s for name, profile in profiles.items() if profile},
            {device.info.name: device.info for device in devices if device.ok},
        )
