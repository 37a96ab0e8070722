"""Devices in processes of their own, for tests."""

from __future__ import annotations

from llmd.api.device import DeviceOptions
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.remote.device import RemoteDevice
from llmd.remote.opening import open_apart
from llmd_transport.local import llmd_transports

LOCAL = PluginName("local", "llmd_transport.local", "llmd-transport", "0.1.0")


def apart(device: DeviceState) -> RemoteDevice:
    """Open a device in a process of its own."""
    (transport,) = llmd_transports()
    return open_apart(device, DeviceOptions(), transport, LOCAL)


def process_of(device: RemoteDevice) -> int:
    """Return the id of the process of a device."""
    return device._connection._process.pid
