"""Finds the running daemons that a change of plugins concerns, and those that it does not."""

from __future__ import annotations

import errno
import shlex
import socket
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.cli.settings import read_settings
from llmd.config import Address, UnixAddress

if TYPE_CHECKING:
    from llmd.config import Settings


class RunningDaemons(Struct, frozen=True):
    """The daemons that answer."""

    here: Address | None = None
    """The daemon of this machine."""
    elsewhere: Address | None = None
    """The daemon that commands use, if it is on another machine."""
    named_by: str = ""
    """The setting that names it."""

    @property
    def reload(self) -> str:
        """The command that reloads the daemon of this machine."""
        return f"llmd reload --host {shlex.quote(str(self.here))}" if self.elsewhere else "llmd reload"


def running_daemons() -> RunningDaemons:
    """Look for the daemon that commands use, and if that is on another machine, for one on this machine."""
    try:
        return _running(read_settings(None))
    except LlmdError:
        return RunningDaemons()


def _running(settings: Settings) -> RunningDaemons:
    from llmd.client import candidates, find_daemon, own_addresses

    used = find_daemon(candidates(settings, None))
    if not settings.config.client.host or is_on_this_machine(used):
        return RunningDaemons(here=used)
    named_by = settings.origins["client.host"].source
    try:
        return RunningDaemons(find_daemon(own_addresses(settings)), used, named_by)
    except DaemonUnreachableError:
        return RunningDaemons(None, used, named_by)


def is_on_this_machine(address: Address) -> bool:
    """Whether a daemon that answers is on this machine; its host may be any name or address of it."""
    from llmd.client_connection import connected

    if isinstance(address, UnixAddress):
        return True
    try:
        with connected(address) as connection:
            return is_own(connection.family, connection.getpeername())
    except OSError:  # it has just ended
        return False


def is_own(family: int, peer: tuple[Any, ...]) -> bool:
    """Whether a socket address is one of this machine's: only those can be bound."""
    host, _port, *scope = peer
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0, *scope))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True
