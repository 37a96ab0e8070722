"""Sends notifications to the service manager (``sd_notify``)."""

from __future__ import annotations

import logging
import socket
import time

logger = logging.getLogger(__name__)


class Notifier:
    """Sends the daemon's state to ``NOTIFY_SOCKET``. Without an address, every call does nothing."""

    def __init__(self, address: str = "") -> None:
        """``address`` is the path of a datagram socket, or ``@NAME`` in the abstract namespace."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._status = ""

    @property
    def is_heard(self) -> bool:
        """Whether there is a service manager."""
        return bool(self._address)

    def ready(self) -> None:
        """Say that the start, or a reload, has ended."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Say that a reload begins; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """Set the line that ``systemctl status`` shows."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={' '.join(text.splitlines())}")

    def need_time(self, seconds: float) -> None:
        """Ask for more time for the start or the stop; repeat it within this time."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def ping(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                # A service manager that does not read must not stop the event loop.
                sock.setblocking(False)
                sock.sendto(text.encode(), self._address)
        except OSError as error:
            logger.warning("service_manager_not_notified", extra={"reason": str(error)})
