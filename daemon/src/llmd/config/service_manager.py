"""What a service manager (systemd) tells a daemon in its environment."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from msgspec import Struct

FIRST_DESCRIPTOR = 3
VARIABLES = (
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
)


class PassedSocket(Struct, frozen=True):
    """A listening socket that the service manager has opened."""

    descriptor: int
    name: str
    """``FileDescriptorName=`` of its socket unit."""


class ServiceManager(Struct, frozen=True):
    """The service manager's sockets and wishes; all empty without one."""

    sockets: tuple[PassedSocket, ...] = ()
    notify_socket: str = ""
    """Where it receives notifications: a path, or ``@NAME`` in the abstract namespace."""
    watchdog_s: float | None = None
    """It ends a daemon that has sent no ping for this long; None: it expects none."""


def take_service_manager(environ: MutableMapping[str, str], pid: int) -> ServiceManager:
    """Read the variables of systemd's protocols and remove them, since they are not for child processes.

    ``pid`` is this process: sockets and watchdog of another one are ignored.
    """
    found = ServiceManager(
        _sockets(environ, pid), environ.get("NOTIFY_SOCKET", ""), _watchdog_s(environ, pid)
    )
    for name in VARIABLES:
        environ.pop(name, None)
    return found


def _sockets(environ: Mapping[str, str], pid: int) -> tuple[PassedSocket, ...]:
    if environ.get("LISTEN_PID") != str(pid):
        return ()
    count = _whole(environ.get("LISTEN_FDS", ""))
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    if len(names) != count:
        names = [""] * count
    return tuple(PassedSocket(FIRST_DESCRIPTOR + index, name) for index, name in enumerate(names))


def _watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    return _whole(environ.get("WATCHDOG_USEC", "")) / 1e6 or None


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
