"""Finds out where this process's log goes: a journal, the file of background daemons, or elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from llmd.api.machine import read_lines

_USER_MANAGER = re.compile(r"user@\d+\.service")


class LogPlace(Struct, frozen=True):
    """Where a daemon's log goes."""

    kind: Literal["journal", "file", "other"]
    path: str = ""
    """The file, absolute."""
    unit: str = ""
    """The systemd unit whose journal it is."""
    is_user_unit: bool = False
    """Whether a user's systemd runs the unit, and not the system's."""


NO_LOG = LogPlace("other")


def log_place(environ: Mapping[str, str], log: Path, descriptor: int = 2) -> LogPlace:
    """Return where a process that logs to ``descriptor`` logs to; ``log`` is a background daemon's file."""
    if is_journal(environ, descriptor):
        return _unit_of(Path("/proc/self/cgroup"))
    return LogPlace("file", str(log)) if is_file(log, descriptor) else NO_LOG


def is_journal(environ: Mapping[str, str], descriptor: int = 2) -> bool:
    """Whether the descriptor is the connection to the journal that systemd opened for this process."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def is_file(path: Path, descriptor: int = 2) -> bool:
    """Whether the descriptor has this file open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _unit_of(groups: Path) -> LogPlace:
    """Return the unit of the control group that this process is in."""
    parts = [part for line in read_lines(groups) for part in line.rpartition(":")[2].split("/")]
    units = [part for part in parts if part.endswith(".service") and not _USER_MANAGER.fullmatch(part)]
    is_user_unit = any(_USER_MANAGER.fullmatch(part) for part in parts)
    return LogPlace("journal", unit=units[-1] if units else "", is_user_unit=is_user_unit)
