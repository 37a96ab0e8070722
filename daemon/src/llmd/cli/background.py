"""Starts a daemon that outlives this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from llmd.api.errors import DaemonUnreachableError
from llmd.config import Directories

LAST_LINES = 3


def start_daemon(directories: Directories, arguments: Sequence[str]) -> str:
    """Run ``llmd`` with the arguments in a new session; return the line that it prints when it is ready.

    Its log goes to ``daemon.log`` in the state directory.

    Raises:
        DaemonUnreachableError: it exited before it was ready; the message has the last lines of its log, and
        the
            exit code is the daemon's.
    """
    directories.state.mkdir(parents=True, exist_ok=True)
    log = directories.log
    with log.open("ab") as stderr:
        os.fchmod(stderr.fileno(), 0o600)  # it names clients, keys and models
        began = stderr.tell()
        daemon = subprocess.Popen(
            [sys.executable, "-m", "llmd.cli.main", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    assert daemon.stdout is not None
    with daemon.stdout as output:
        line = output.readline().decode().strip()
    if line:
        daemon.returncode = 0  # it outlives this process, which must not wait for it
        return line
    status = daemon.wait()
    error = DaemonUnreachableError(
        f"the daemon exited with {status} before it was ready: {_last_lines(log, began)}",
        hint=f"see {log} for the full log, or run `llmd doctor` to check the installation",
    )
    error.exit_code = status if status > 0 else error.exit_code
    raise error


def _last_lines(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-LAST_LINES:]) or "it logged nothing"
