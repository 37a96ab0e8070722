"""Listening sockets that a service manager has opened and passed on (``LISTEN_FDS``)."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from llmd.api.errors import ConfigError
from llmd.config import Address, TcpAddress, UnixAddress
from llmd.config.service_manager import PassedSocket
from llmd.server.http.listeners import Listener

ENCRYPTED = "https"
"""A TCP socket of this name carries TLS."""

FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)


def passed_listeners(passed: Sequence[PassedSocket], configured: Sequence[Address]) -> list[Listener]:
    """Return the passed sockets as listeners, which leave the file of a Unix socket where it is.

    A TCP socket is encrypted if it is named ``https`` or has the port of a configured ``https://…`` address.

    Raises:
        ConfigError: a descriptor is not a listening stream socket of a known family.
    """
    encrypted = {one.port for one in configured if isinstance(one, TcpAddress) and one.tls}
    return [_listener(one, encrypted) for one in passed]


def own_addresses(configured: Sequence[Address], passed: Sequence[Listener]) -> list[Address]:
    """Return the addresses that the daemon opens itself: those of kinds of which no socket was passed."""
    kinds = {type(listener.address) for listener in passed}
    return [address for address in configured if type(address) not in kinds]


def _listener(passed: PassedSocket, encrypted: set[int]) -> Listener:
    try:
        os.set_inheritable(passed.descriptor, False)
        found = socket.socket(fileno=passed.descriptor)
        listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise _refused(passed, error.strerror or str(error)) from error
    if found.family not in FAMILIES or found.type != socket.SOCK_STREAM or not listens:
        found.close()
        raise _refused(passed, "it is not a listening TCP or Unix stream socket")
    found.setblocking(False)
    name = found.getsockname()
    if found.family == socket.AF_UNIX:
        return Listener(found, UnixAddress(Path(os.fsdecode(name))))
    tls = passed.name == ENCRYPTED or name[1] in encrypted
    return Listener(found, TcpAddress(name[0], name[1], tls))


def _refused(passed: PassedSocket, reason: str) -> ConfigError:
    return ConfigError(
        f"the service manager passed descriptor {passed.descriptor} ({passed.name or 'unnamed'}): {reason}",
        hint="use ListenStream= and Accept=no in the socket unit",
    )
