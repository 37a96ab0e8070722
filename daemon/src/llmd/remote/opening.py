"""Opens a device in a process of its own."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import closing

import msgspec

from llmd.api.device import DeviceOptions
from llmd.api.errors import DeviceError, DeviceLostError, LinkError
from llmd.api.plugins import Transport
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.process.frames import frame
from llmd.remote.connection import Connection, end
from llmd.remote.device import RemoteDevice
from llmd.remote.messages import Job

log = logging.getLogger(__name__)

SCHEME = "local"
"""The transport that links processes of one machine."""

START_LIMIT_S = 60.0
"""A process starts in 0.2 s, but far later on a machine that is busy with inference."""
OPEN_LIMIT_S = 120.0
"""Drivers may take seconds for each device of the machine."""


def open_apart(
    device: DeviceState, options: DeviceOptions, transport: Transport, transport_plugin: PluginName
) -> RemoteDevice:
    """Open a device in a process of its own, which `RemoteDevice.close` ends.

    Raises:
        DeviceError: the process does not start, or the device cannot be opened.
    """
    name = device.info.name
    try:
        with closing(transport.listen(f"{SCHEME}://")) as listener:
            job = Job(
                listener.address,
                transport_plugin,
                device.plugin,
                device.backend,
                name,
                options,
                tuple(sys.path),
            )
            process = start(job)
            try:
                link = listener.accept(START_LIMIT_S)
            except BaseException:
                end(process, 0.0)
                raise
    except (LinkError, OSError) as error:
        raise DeviceError(
            f"the process of device {name} did not start: {error}", hint="see the log for what it wrote"
        ) from error
    connection = Connection(link, process, name)
    try:
        info = connection.opened(OPEN_LIMIT_S)
    except DeviceLostError as error:
        connection.close()
        raise DeviceError(f"it could not be opened: {error.message}", hint=error.hint) from error
    except BaseException:
        connection.close()
        raise
    log.info("device_opened_apart", extra={"device": name, "process_id": process.pid})
    return RemoteDevice(connection, info)


def start(job: Job) -> subprocess.Popen[bytes]:
    """Start the process of a job. It ends with this one, whose end of its standard input stays open.

    It inherits the environment: drivers find their files and devices by it.
    """
    process = subprocess.Popen([sys.executable, "-P", "-m", "llmd.remote"], stdin=subprocess.PIPE)
    assert process.stdin
    try:
        process.stdin.write(frame(msgspec.msgpack.encode(job)))
        process.stdin.flush()
    except OSError:  # it has ended; nobody will connect
        process.kill()
    return process
