"""Waits until a daemon has ended."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from llmd.api.errors import LlmdError
from llmd.cli.terminal import has_changing_lines, replace_line
from llmd.client import Client
from llmd.config import TcpAddress

EXIT_LIMIT_S = 10.0
"""Time that the process may take after it has closed its connections: it ends its engines."""


def stop_and_wait(client: Client, stream: IO[str] | None = None) -> None:
    """Stop the daemon and return when its process has ended, or on another machine its connections.

    On a terminal, a line says how many requests it still answers. Ctrl-C leaves the daemon as it is: it takes
    no new requests and ends after the running ones.
    """
    shown = sys.stderr if stream is None else stream
    is_shown = has_changing_lines(shown)
    with process_end(_pid_of(client)) as wait:
        for count in client.stopping():
            if is_shown:
                replace_line(shown, waiting(count))
        wait()
    if is_shown:
        replace_line(shown, "")


def waiting(count: int) -> str:
    """Say what the daemon waits for."""
    if not count:
        return "the daemon ends"
    return f"waiting for {count} request{'s' if count > 1 else ''}; Ctrl-C returns, and the daemon ends later"


@contextmanager
def process_end(pid: int | None) -> Iterator[Callable[[], None]]:
    """Yield what waits for the end of a process of this machine, for a limited time.

    A number that stands for no process, or a system without such waiting, is not waited for.
    """
    handle = _handle(pid)
    try:
        yield lambda: _wait(handle)
    finally:
        if handle is not None:
            os.close(handle)


def _handle(pid: int | None) -> int | None:
    """Return a descriptor that can be read once the process has ended; None if there is none."""
    if pid is None or pid == os.getpid() or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # it has ended, or is in another container
        return None


def _wait(handle: int | None) -> None:
    if handle is not None:
        select.select([handle], [], [], EXIT_LIMIT_S)


def _pid_of(client: Client) -> int | None:
    """Return the process of a daemon on this machine; None if it is not known."""
    address = client.address
    if isinstance(address, TcpAddress) and not address.is_loopback:
        return None
    try:
        pid = client.daemon().get("pid")
    except LlmdError:  # stopping it says what is wrong
        return None
    return pid if isinstance(pid, int) else None
