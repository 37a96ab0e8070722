"""The daemon at one moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from llmd.api.messages import Report

PROC = Path("/proc")
FRONT = "front"


class ModelState(Struct, frozen=True):
    """A model. ``waiting`` are sequences that cannot run at once; ``report`` is None while its engine does not answer."""

    name: str
    status: str
    waiting: int
    engine_pid: int | None = None
    report: Report | None = None


class ProcessUse(Struct, frozen=True):
    """Resident memory and open descriptors of a process."""

    resident_bytes: int
    descriptors: int


def process_use(pid: int, proc: Path = PROC) -> ProcessUse | None:
    """What a process takes; None where it has gone, or the system does not tell."""
    try:
        pages = int((proc / str(pid) / "statm").read_text().split()[1])
        descriptors = sum(1 for _ in (proc / str(pid) / "fd").iterdir())
    except (OSError, IndexError, ValueError):
        return None
    return ProcessUse(pages * os.sysconf("SC_PAGE_SIZE"), descriptors)


def engine_use(pid: int, proc: Path = PROC) -> ProcessUse | None:
    """What an engine takes, with the processes that it has started: the one of its grammars."""
    lists = (proc / str(pid) / "task").glob("*/children")
    try:
        pids = [pid, *(int(child) for children in lists for child in children.read_text().split())]
    except (OSError, ValueError):
        pids = [pid]
    own, *others = (process_use(one, proc) for one in pids)
    if own is None:
        return None
    uses = [own, *(use for use in others if use is not None)]
    return ProcessUse(sum(use.resident_bytes for use in uses), sum(use.descriptors for use in uses))


def processes_of(models: Sequence[ModelState]) -> Mapping[str, ProcessUse]:
    """The front and the engines, by what each serves."""
    found = {FRONT: process_use(os.getpid())} | {
        f"engine {model.name}": engine_use(model.engine_pid)
        for model in models
        if model.engine_pid is not None
    }
    return {name: use for name, use in found.items() if use is not None}
