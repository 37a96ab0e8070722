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


def processes_of(models: Sequence[ModelState]) -> Mapping[str, ProcessUse]:
    """The front and the engines, by what each serves."""
    pids = {FRONT: os.getpid()} | {
        f"engine {model.name}": model.engine_pid for model in models if model.engine_pid is not None
    }
    found = {name: process_use(pid) for name, pid in pids.items()}
    return {name: use for name, use in found.items() if use is not None}
