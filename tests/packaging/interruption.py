"""A command for plugins that is stopped in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.packaging.user import User


@contextmanager
def begun(user: User, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that has reached the point at which the plugin, or its build, hangs."""
    reached = user.environment.prefix / "reached"
    reached.unlink(missing_ok=True)
    command = [str(user.environment.prefix / "bin" / "llmd"), *arguments]
    with subprocess.Popen(
        command, env=user.variables(), stdout=subprocess.DEVNULL, text=True, start_new_session=True
    ) as running:
        while not reached.exists():
            assert running.poll() is None
        yield running
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)  # what it started, such as pip
