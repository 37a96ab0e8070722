"""The addresses that a daemon listens on: whether one does, or could."""

from __future__ import annotations

import os
import shlex
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from llmd.cli.doctor.check import Check, Surroundings, quoted
from llmd.cli.doctor.listening_process import on_port, on_socket
from llmd.cli.doctor.patience import answer_of, is_refused
from llmd.config import TcpAddress, UnixAddress

OTHERS = 0o077
WRITABLE_BY_OTHERS = 0o022
TRIED_PORTS = 100


def checks(around: Surroundings) -> Iterator[Check]:
    from llmd.config.listening import listening_addresses

    addresses = listening_addresses(around.settings)
    sockets = [address.path for address in addresses if isinstance(address, UnixAddress)]
    for path in sockets:
        yield socket_check(path)
        yield from folder_checks(path.parent)
    others = [str(address) for address in addresses if not isinstance(address, TcpAddress)]
    for address in addresses:
        if isinstance(address, TcpAddress) and address.port:
            yield port_check(address, sockets, others)


def socket_check(path: Path) -> Check:
    """Check a Unix socket: nobody else may connect to it, and if it is there, a daemon listens on it."""
    name, shell = f"socket:{path}", quoted(path)
    try:
        found = path.lstat()
    except FileNotFoundError:
        return Check(name, "ok", "free")
    except OSError as error:
        return Check(
            name, "fail", f"it cannot be reached: {error.strerror}", f"make {path.parent} accessible"
        )
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISSOCK(found.st_mode):
        check = Check(name, "fail", "it is a file, not a socket", f"move it away: `mv {shell} {shell}.old`")
    elif found.st_uid not in {os.getuid(), 0}:
        check = Check(name, "fail", f"it belongs to user {found.st_uid}", f"remove it: `rm -f {shell}`")
    elif is_refused(UnixAddress(path)):
        seen = "no daemon listens on it: one ended without removing it"
        check = Check(name, "warn", seen, f"remove it: `rm {shell}`")
    elif mode & OTHERS:
        seen = f"other users may connect to it (mode {mode:04o})"
        check = Check(name, "warn", seen, f"keep it to yourself: `chmod 600 {shell}`")
    else:
        check = Check(name, "ok", str(on_socket(path) or "a daemon listens on it"))
    return check


def folder_checks(folder: Path) -> Iterator[Check]:
    """Check that others cannot replace the socket: its folder is not theirs to write, unless it is sticky."""
    if not folder.is_dir():
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
        seen = f"other users may replace the socket in it (mode {mode:04o})"
        yield Check(
            f"socket-folder:{folder}", "warn", seen, f"keep it to yourself: `chmod 700 {quoted(folder)}`"
        )


def port_check(address: TcpAddress, sockets: list[Path], others: list[str]) -> Check:
    """Check that a TCP address is free, or that the user's daemon has it.

    ``sockets`` are the Unix sockets of the same daemon, ``others`` its other addresses, which a fix keeps.
    """
    name = f"address:{address}"
    elsewhere = (
        f"listen elsewhere: `llmd config set addr {shlex.join([*others, str(free_address(address))])}`"
    )
    if is_refused(address):
        return bindable_check(name, address, elsewhere)
    owner = on_port(address.port)
    who = f" ({owner})" if owner else ""
    own = owner is not None and owner in map(on_socket, sockets)
    version = answer_of(address)
    if version is None and own:
        return Check(
            name, "warn", f"your daemon has it, but does not answer{who}", "see the check of the daemon"
        )
    if version is None:
        return Check(name, "fail", f"another program uses it{who}", f"end that program, or {elsewhere}")
    if owner and sockets and not own:
        seen = f"another llmd daemon uses it{who}"
        return Check(name, "fail", seen, f"stop it, `llmd stop --daemon --host {address}`, or {elsewhere}")
    return Check(name, "ok", f"llmd {version}{who}")


def bindable_check(name: str, address: TcpAddress, fix: str) -> Check:
    """Check that this process could listen on a free address."""
    error = bind_error(address)
    if error is not None:
        return Check(name, "fail", f"a daemon cannot listen on it: {error.strerror or error}", fix)
    return Check(name, "ok", "free")


def bind_error(address: TcpAddress) -> OSError | None:
    """Return why this process cannot listen on an address; None if it can."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trying.bind((address.host, address.port))
    except OSError as error:
        return error
    return None


def free_address(address: TcpAddress) -> TcpAddress:
    """Return the same address with the next port above 1023 that a daemon can listen on."""
    first = max(address.port + 1, 1024)
    ports = range(first, min(first + TRIED_PORTS, 1 << 16))
    tried = (TcpAddress(address.host, port, address.tls) for port in ports)
    # A port on which nobody listens may be the other end of a connection.
    free = (one for one in tried if is_refused(one) and bind_error(one) is None)
    return next(free, TcpAddress(address.host, 0, address.tls))
