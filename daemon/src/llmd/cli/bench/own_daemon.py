"""A temporary daemon for one measurement, on its own address."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from llmd.api.errors import DaemonUnreachableError

STOP_LIMIT_S = 30.0
LAST_LINES = 3
_COMMAND = (sys.executable, "-m", "llmd.cli.main", "serve")


@contextmanager
def own_daemon(arguments: Sequence[str]) -> Iterator[str]:
    """Run ``llmd serve`` with the arguments until the block ends; yield its base URL.

    Raises:
        DaemonUnreachableError: it exited before it was ready; the message has the last lines of its log, and
        the
            exit code is the daemon's.
    """
    with tempfile.TemporaryDirectory(prefix="llmd-bench-") as folder:
        address, log = f"unix:{folder}/llmd.sock", Path(folder) / "daemon.log"
        with log.open("wb") as stderr:
            # In a new session, so that Ctrl-C reaches only the measurement, which then stops the daemon.
            daemon = subprocess.Popen(
                (*_COMMAND, "--addr", address, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            _wait_until_ready(daemon, log)
            yield address
        finally:
            _end(daemon)


def _wait_until_ready(daemon: subprocess.Popen[bytes], log: Path) -> None:
    assert daemon.stdout is not None
    if daemon.stdout.readline():
        return
    status = daemon.wait()
    said = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    words = " / ".join(line.strip() for line in said) or "it logged nothing"
    error = DaemonUnreachableError(
        f"the daemon exited with {status} before it was ready: {words}",
        hint="run `llmd serve` with the same model to see more, or `llmd doctor` to check the installation",
    )
    error.exit_code = status if status > 0 else error.exit_code
    raise error


def _end(daemon: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM twice, so that the daemon does not wait for running answers; kill it if it hangs."""
    with daemon:
        for _ in range(2):
            daemon.terminate()
        try:
            daemon.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
