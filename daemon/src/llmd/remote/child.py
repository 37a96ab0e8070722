"""The process of a device. It ends when the engine closes the link or ends itself, in whatever way."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import sys

import msgspec

from llmd.api.decoding import prepared
from llmd.api.device import Device
from llmd.api.plugins import Backend, Transport
from llmd.api.transport import Link
from llmd.host.blas_threads import keep_blas_single_threaded
from llmd.host.description import describe
from llmd.process.frames import read_payload
from llmd.remote.errors import report_of
from llmd.remote.messages import Job, Reply
from llmd.remote.serving import DeviceServer, send

CONNECT_LIMIT_S = 30.0


def main() -> None:
    """Open the device of the job and answer requests. Never returns: a driver's clean-up at exit may hang."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The engine decides when this process ends, but Ctrl-C in a terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a driver prints is no answer
    keep_blas_single_threaded()
    payload = read_payload(sys.stdin.buffer)
    if payload is None:
        os._exit(1)
    job = msgspec.msgpack.decode(payload, type=prepared(Job))
    end_with(sys.stdin.fileno())
    sys.path.extend(folder for folder in job.search_path if folder not in sys.path)
    transports: tuple[Transport, ...] = describe(job.transport).transport
    scheme, _, _ = job.address.partition("://")
    connect = next(one for one in transports if one.scheme == scheme).connect
    link = connect(job.address, CONNECT_LIMIT_S)
    if device := opened(job, link):
        DeviceServer(device, link).serve()
        device.close()
    os._exit(0)


def end_with(pipe: int) -> None:
    """Have the system kill this process when the other end of a pipe is closed, whatever it does then.

    See fcntl(2), F_SETSIG. Unlike PR_SET_PDEATHSIG, it does not matter which thread of the engine started it.
    """
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    if poll.poll(0):  # it was closed before
        os._exit(1)


def opened(job: Job, link: Link) -> Device | None:
    """Open the device; if that fails, tell the engine why."""
    try:
        backends: tuple[Backend, ...] = describe(job.plugin).backend
        backend = next(one for one in backends if one.name == job.backend)
        return backend.open(job.device, job.options)
    except Exception as error:  # noqa: BLE001 - plugins may raise anything
        send(link, Reply(error=report_of(error)))
        return None
