"""Waiting for a socket, and the error if it is closed."""

from __future__ import annotations

import math
import select
import socket
import time

from llmd.api.errors import LinkClosedError


def is_ready(sock: socket.socket, deadline: float) -> bool:
    """Wait until there is something to receive or the peer has closed its end; return False at the deadline,
    a time of ``time.monotonic``.
    """
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    left_s = max(0.0, deadline - time.monotonic())
    return bool(poll.poll(None if math.isinf(left_s) else math.ceil(1e3 * left_s)))


def closed_error() -> LinkClosedError:
    """Return the error of a link that was closed by either side, or whose peer has ended."""
    return LinkClosedError("the link is closed, or its peer has ended", hint="connect again")
