"""A snapshot of the daemon's models and processes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from llmd.api.reports import Report
from llmd.process.limits import PROC, child_ids
from llmd.server.telemetry.model_facts import Verdict
from llmd.server.telemetry.stage_times import StageTime

FRONT = "front"


class ModelState(Struct, frozen=True):
    """A served model."""

    name: str
    status: str
    waiting: int
    """Sequences that wait for others to end."""
    engine_pid: int | None = None
    report: Report | None = None
    """None if its engine does not answer."""
    verdicts: tuple[Verdict, ...] = ()
    """What there is to say of it, the most urgent first."""
    stage_times: tuple[StageTime, ...] = ()
    """What a step takes in each of its stages."""


class ProcessUse(Struct, frozen=True):
    resident_bytes: int
    descriptors: int


def process_use(pid: int, proc: Path = PROC) -> ProcessUse | None:
    """Return what a process uses; None if it has ended or the system does not say."""
    try:
        pages = int((proc / str(pid) / "statm").read_text().split()[1])
        descriptors = sum(1 for _ in (proc / str(pid) / "fd").iterdir())
    except (OSError, IndexError, ValueError):
        return None
    return ProcessUse(pages * os.sysconf("SC_PAGE_SIZE"), descriptors)


def engine_use(pid: int, proc: Path = PROC) -> ProcessUse | None:
    """Return what an engine uses, including its child processes, such as the one that compiles grammars."""
    own, *others = (process_use(one, proc) for one in (pid, *child_ids(pid, proc)))
    if own is None:
        return None
    uses = [own, *(use for use in others if use is not None)]
    return ProcessUse(sum(use.resident_bytes for use in uses), sum(use.descriptors for use in uses))


def processes_of(models: Sequence[ModelState]) -> Mapping[str, ProcessUse]:
    """Return the use of the front (the daemon's own process) and of each engine, by what it serves."""
    found = {FRONT: process_use(os.getpid())} | {
        f"engine {model.name}": engine_use(model.engine_pid)
        for model in models
        if model.engine_pid is not None
    }
    return {name: use for name, use in found.items() if use is not None}
