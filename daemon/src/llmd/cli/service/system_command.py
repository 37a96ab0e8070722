"""Runs the commands of service managers."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from llmd.api.errors import ConfigError, LlmdError

BOOTED = Path("/run/systemd/system")
"""Exists where systemd is the first process (sd_booted(3))."""


def run(command: Sequence[str], hint: str = "") -> str:
    """Run a command; return what it prints. ``hint`` says what to do if it fails.

    Raises:
        ConfigError: it is not installed.
        LlmdError: it failed; the message has its last words.
    """
    found = shutil.which(command[0])
    if found is None:
        raise ConfigError(
            f"{command[0]} is not installed, so this machine cannot run llmd as a service of it",
            hint="start `llmd serve` with the service manager of this machine; it runs in the foreground",
        )
    done = subprocess.run([found, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = " / ".join(line.strip() for line in done.stderr.splitlines()[-3:])
        raise LlmdError(
            f"`{' '.join(command)}` failed with {done.returncode}: {words or 'without a message'}",
            hint=hint,
        )
    return done.stdout


def succeeds(command: Sequence[str]) -> bool:
    """Return whether a command is installed and succeeds."""
    try:
        run(command)
    except LlmdError:
        return False
    return True


def check_systemd_runs() -> None:
    """Raises `ConfigError` if this machine was not started by systemd, like most containers."""
    if shutil.which("systemctl") is not None and not BOOTED.is_dir():
        raise ConfigError(
            "systemd is not running on this machine, so it cannot run llmd as a service",
            hint="`llmd serve --detach` starts the daemon in the background; `llmd service install --print` shows the"
            " units",
        )


def systemd_version() -> int:
    """Return the version of systemd; 0 if there is none."""
    try:
        found = re.match(r"systemd (\d+)", run(("systemctl", "--version")))
    except LlmdError:
        return 0
    return int(found[1]) if found else 0
