"""Opens the daemon's sockets. Only the owner can reach Unix sockets."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.config import Address, TcpAddress, UnixAddress

logger = logging.getLogger(__name__)

BACKLOG = 1024
EXIT_CONFLICT = 9
USER_UMASK = 0o177
USER_FOLDER_MODE = 0o700
MISSING_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class Listener(Struct, frozen=True):
    """A bound socket and the address at which clients reach it."""

    socket: socket.socket
    address: Address
    file: tuple[int, int] | None = None
    """Identifies the file of a Unix socket, in case another daemon replaces it."""

    def close(self) -> None:
        """Close the socket and remove a Unix socket's file, unless another daemon has replaced it."""
        if isinstance(self.address, UnixAddress):
            with contextlib.suppress(OSError):
                if _identity(self.address.path) == self.file:
                    self.address.path.unlink()
        self.socket.close()


def check_exposure(addresses: Sequence[Address], *, protected: bool) -> None:
    """Raises `ConfigError` if other machines could use the daemon without an API key.

    ``protected``: there is a key, or the user wants none.
    """
    for address in addresses:
        if isinstance(address, TcpAddress) and not address.is_loopback and not protected:
            raise ConfigError(
                f"{address} can be reached from other machines, and no key protects it",
                hint="create a key with `llmd keys add NAME`, listen on 127.0.0.1 or a Unix socket, or use --no-auth to "
                "serve everyone who can reach it",
            )


@contextlib.contextmanager
def listen(
    addresses: Sequence[Address], *, user_folder: Path | None = None, dispensable: Address | None = None
) -> Iterator[tuple[Listener, ...]]:
    """Bind every address; all are closed at the end, or if one of them cannot be bound.

    ``user_folder`` is the directory of the user's own socket. It is created if missing; no other directory
    is. The ``dispensable`` address is left out, and a warning logged, if it is in use or cannot be bound.

    Raises:
        ConfigError: another address is in use or cannot be bound.
    """
    with contextlib.ExitStack() as stack:
        listeners = []
        for address in addresses:
            for listener in _bind_or_warn(address, user_folder, is_needed=address != dispensable):
                stack.callback(listener.close)
                listeners.append(listener)
        yield tuple(listeners)


def _bind_or_warn(address: Address, user_folder: Path | None, *, is_needed: bool) -> list[Listener]:
    try:
        return _bind(address, user_folder)
    except ConfigError as error:
        if is_needed:
            raise
        logger.warning("user_socket_not_opened", extra={"reason": error.message})
        return []


def _bind(address: Address, user_folder: Path | None) -> list[Listener]:
    try:
        return [_bind_unix(address, user_folder)] if isinstance(address, UnixAddress) else _bind_tcp(address)
    except OSError as error:
        refused = ConfigError(
            f"cannot listen on {address}: {error.strerror or error}", hint="choose another --addr"
        )
        if error.errno == errno.EADDRINUSE:
            refused.hint = (
                "if `llmd ps` shows that a daemon is running, `llmd load MODEL` gives it another model and"
                " `llmd stop --daemon` ends it; else another program uses the address: choose another --addr"
            )
            refused.exit_code = EXIT_CONFLICT
        raise refused from error


def _bind_tcp(address: TcpAddress) -> list[Listener]:
    """Bind every address of the host name. Families that this machine lacks are skipped if another works."""
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[Listener] = []
    missing: OSError | None = None
    for family, _, _, _, where in dict.fromkeys(infos):
        try:
            listeners.append(_bind_one(family, where, tls=address.tls))
        except OSError as error:
            if error.errno not in MISSING_FAMILY:
                _close_all(listeners)
                raise
            missing = error
    if not listeners and missing is not None:
        raise missing
    return listeners


def _bind_one(family: int, where: tuple[Any, ...], *, tls: bool) -> Listener:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(where)
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    host, port = bound.getsockname()[:2]
    return Listener(bound, TcpAddress(host, port, tls))


def _close_all(listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        listener.close()


def _bind_unix(address: UnixAddress, user_folder: Path | None) -> Listener:
    path = address.path
    if path.parent == user_folder:
        path.parent.mkdir(mode=USER_FOLDER_MODE, parents=True, exist_ok=True)
    elif not path.parent.exists():
        raise ConfigError(
            f"cannot listen on {address}: the folder {path.parent} does not exist",
            hint=f"create it with `mkdir -p {path.parent}`, or choose another --addr",
        )
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Between bind and chmod anyone could connect: the file must be created with its final mode.
    umask = os.umask(USER_UMASK)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(umask)
    bound.listen(BACKLOG)
    return Listener(bound, address, _identity(path))


def _identity(path: Path) -> tuple[int, int]:
    """Return the file's inode and modification time; some file systems reuse inodes at once."""
    found = path.lstat()
    return found.st_ino, found.st_mtime_ns


def _remove_stale(path: Path) -> None:
    """Remove a socket that no process listens on. Any other file is an error."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "the path is a file, not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise OSError(errno.EADDRINUSE, "a daemon is already listening there")
