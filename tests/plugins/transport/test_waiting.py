"""Waiting for a socket ends at its deadline."""

from __future__ import annotations

import math
import socket
import time

from llmd_transport.waiting import is_ready


def test_a_socket_is_ready_once_it_has_something_or_its_peer_is_gone() -> None:
    near, far = socket.socketpair()
    with near:
        assert not is_ready(near, time.monotonic() - 1.0)
        assert not is_ready(near, time.monotonic() + 0.001)
        far.send(b"x")
        assert is_ready(near, math.inf)
        assert near.recv(1) == b"x"
        far.close()
        assert is_ready(near, math.inf)
