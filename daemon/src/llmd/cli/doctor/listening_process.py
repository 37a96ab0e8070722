"""Which process listens at an address. Known on Linux alone, and of processes of other users only in part."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

PROC = Path("/proc")
LISTENING = "0A"
"""The state of a socket in ``/proc/net/tcp``."""


class Listening(msgspec.Struct, frozen=True):
    """A process that listens."""

    pid: int | None
    """None: a process of another user."""
    uid: int

    def __str__(self) -> str:
        if self.pid is None:
            return f"a process of user {self.uid}"
        try:
            name = (PROC / str(self.pid) / "comm").read_text().strip()
        except OSError:
            name = "a process"
        return f"{name}, process {self.pid}"


def on_socket(path: Path) -> Listening | None:
    """Return the process that listens on a Unix socket; None if none does or it may not be asked."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.settimeout(1.0)
            asking.connect(str(path))
            pid, uid, _gid = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except (OSError, AttributeError):
            return None
    return Listening(pid or None, uid)


def on_port(port: int) -> Listening | None:
    """Return the process that listens on a TCP port of this machine; None if that is not known."""
    for name in ("net/tcp", "net/tcp6"):
        for words in _rows(PROC / name):
            if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                return Listening(_owner(words[9]), int(words[7]))
    return None


def _rows(table: Path) -> Iterator[list[str]]:
    try:
        yield from (line.split() for line in table.read_text().splitlines()[1:])
    except OSError:
        return


def _owner(inode: str) -> int | None:
    """Return the process that has a socket open, if this user may see it."""
    for process in PROC.glob("[0-9]*"):
        try:
            if any(str(link.readlink()) == f"socket:[{inode}]" for link in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or belongs to another user
            continue
    return None
