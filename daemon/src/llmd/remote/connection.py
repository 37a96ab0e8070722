"""The engine's side of the link to the process of a device."""

from __future__ import annotations

import logging
import math
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from llmd.api.device import DeviceInfo
from llmd.api.errors import DeviceLostError, LinkClosedError, LinkError, LinkTimeoutError
from llmd.api.transport import Link
from llmd.process.frames import FrameError
from llmd.remote.array_frames import ArrayFrame, ArrayFrameReader
from llmd.remote.errors import error_of
from llmd.remote.messages import REPLIES, DeviceStatus, GetStatus, Reply, Request

log = logging.getLogger(__name__)

SEND_LIMIT_S = 30.0
"""How long a process may leave requests unread: it reads them between steps."""
CALL_LIMIT_S = 600.0
"""How long any call may take. It ends the wait for a driver that hangs where the contract has no limit."""
GRACE_S = 5.0
"""How much longer than a limit of its own a process may take to report that it has passed."""
END_LIMIT_S = 5.0
"""How long a process may take to end once its link is closed."""


class Connection:
    """Sends requests to the process of a device and returns its replies. Thread-safe: one call at a time.

    A process that ends, does not answer in time or sends nonsense is a lost device: it is killed, and from
    then on every call raises `DeviceLostError`. Requests without a reply are then dropped.
    """

    def __init__(self, link: Link, process: subprocess.Popen[bytes], device: str) -> None:
        self._link = link
        self._process = process
        self._device = device
        self._readers: dict[Any, ArrayFrameReader[Reply[Any]]] = {}
        self._calling = threading.Lock()
        self._sending = threading.Lock()
        self._lost = ""
        self.last_status: DeviceStatus | None = None
        """What the process last said."""

    def opened(self, timeout_s: float) -> DeviceInfo:
        """Return what the process says once it has opened the device."""
        with self._calling:
            info: DeviceInfo = self._receive(DeviceInfo, timeout_s, None)
            return info

    def call(
        self,
        request: Request,
        timeout_s: float = CALL_LIMIT_S,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Any:
        """Send a request and return its reply, of the type that `REPLIES` names.

        Raises:
            DeviceLostError: the process is gone, or sent no reply in time.
            Exception: what the device raised.
        """
        with self._calling:
            self._send(request)
            return self._receive(REPLIES[type(request)], timeout_s, on_progress)

    def tell(self, request: Request) -> None:
        """Send a request that has no reply. Does nothing if the process is gone."""
        if not self._lost:
            try:
                self._send(request)
            except DeviceLostError:
                return  # the next call says so

    def status(self) -> DeviceStatus:
        """Ask for the status; while another call runs or once the process is gone, return the last known.

        A step may take long, and a device that hangs never answers. That a process is gone is for the next
        step to say, after which the model is placed again.

        Raises:
            DeviceLostError: the process is gone, and never said it.
        """
        if self._calling.acquire(blocking=self.last_status is None):
            try:
                self._send(GetStatus())
                self.last_status = self._receive(DeviceStatus, CALL_LIMIT_S, None)
            except DeviceLostError:
                if self.last_status is None:
                    raise
            finally:
                self._calling.release()
        assert self.last_status is not None
        return self.last_status

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        self._lost = self._lost or "it was closed"
        self._link.close()
        end(self._process, END_LIMIT_S)

    def _send(self, request: Request) -> None:
        frame = ArrayFrame(request)
        with self._sending:
            self._check_lost()
            try:
                frame.write_to(self._link.reserve(frame.num_bytes, SEND_LIMIT_S))
                self._link.commit(frame.num_bytes)
            except (LinkClosedError, LinkTimeoutError) as error:
                raise self._lose(error) from error

    def _receive(self, form: Any, timeout_s: float, on_progress: Callable[[int, int], None] | None) -> Any:
        deadline = time.monotonic() + min(timeout_s, CALL_LIMIT_S) + GRACE_S
        reader = self._reader(form)
        while True:
            self._check_lost()
            try:
                with self._link.receive(max(0.0, deadline - time.monotonic())) as data:
                    reply = reader.read(data)
            except (LinkError, FrameError) as error:
                raise self._lose(error) from error
            self.last_status = reply.status or self.last_status
            if reply.error is not None:
                raise error_of(reply.error)
            if reply.progress is None:
                return reply.value
            deadline = time.monotonic() + CALL_LIMIT_S
            if on_progress:
                on_progress(*reply.progress)

    def _reader(self, form: Any) -> ArrayFrameReader[Reply[Any]]:
        if form not in self._readers:
            self._readers[form] = ArrayFrameReader(Reply[form])
        return self._readers[form]

    def _lose(self, cause: Exception) -> DeviceLostError:
        """Kill the process, and return the error that says why."""
        if not self._lost:
            if isinstance(cause, LinkTimeoutError):
                self._lost = "its process does not answer"
            elif isinstance(cause, LinkClosedError):
                self._lost = f"its process ended{_status(self._process)}"
            else:
                self._lost = f"its process cannot be understood: {cause}"
            log.warning("device_process_lost", extra={"device": self._device, "reason": self._lost})
            self._process.kill()
        return self._lost_error()

    def _check_lost(self) -> None:
        if self._lost:
            raise self._lost_error()

    def _lost_error(self) -> DeviceLostError:
        return DeviceLostError(
            self._lost,
            devices=(self._device,),
            hint="see the log of the device's driver, and what its process wrote before",
        )


def end(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Wait until a process has ended; kill it after ``timeout_s`` seconds."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def _status(process: subprocess.Popen[bytes]) -> str:
    """Say how a process ended, if it has."""
    try:
        return f" with status {process.wait(END_LIMIT_S)}"
    except subprocess.TimeoutExpired:
        return ""


def limited(timeout_s: float) -> float:
    """Return a limit of a step as one that can be sent: `ThreadedStage` waits without one."""
    return CALL_LIMIT_S if math.isinf(timeout_s) else timeout_s
