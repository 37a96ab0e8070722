"""Starts a daemon that outlives this process, and in that daemon says why it cannot start."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.config import Directories
from llmd.config.log_place import is_file

logger = logging.getLogger(__name__)

LAST_LINES = 3


def start_daemon(directories: Directories, arguments: Sequence[str]) -> str:
    """Run ``llmd`` with the arguments in a new session; return the line that it prints when it is ready.

    Its log goes to ``daemon.log`` in the state directory.

    Raises:
        LlmdError: it could not start; this is its own error, with its exit code.
        DaemonUnreachableError: it exited without an error of its own; the message has the last lines of its
            log.
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
    failure = told_failure(line)
    if line and failure is None:
        daemon.returncode = 0  # it outlives this process, which must not wait for it
        return line
    status = daemon.wait()
    if failure is not None:
        failure.exit_code = status
        raise failure
    error = DaemonUnreachableError(
        f"the daemon exited with {status} before it was ready: {_last_lines(log, began)}",
        hint=f"see {log} for the full log, or run `llmd doctor` to check the installation",
    )
    error.exit_code = status if status > 0 else error.exit_code
    raise error


@contextmanager
def failure_told() -> Iterator[None]:
    """In the background, log an error of the block, tell it to whoever waits for the line on standard output,
    and end the command.
    """
    try:
        yield
    except LlmdError as error:
        if not is_file(Directories.of(os.environ).log):
            raise
        logger.error("not_started", extra={"reason": error.message, "hint": error.hint or None})  # noqa: TRY400 - the reason says it all
        told = {"message": error.message, "hint": error.hint}
        click.echo(json.dumps({"error": told}))
        click.get_current_context().exit(error.exit_code)


def told_failure(line: str) -> LlmdError | None:
    """Return the error that a daemon told in place of its line; None if the line tells none."""
    if not line.startswith("{"):
        return None
    told = json.loads(line)["error"]
    return LlmdError(told["message"], hint=told["hint"])


def _last_lines(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-LAST_LINES:]) or "it logged nothing"
