"""How much of the machine's processors other programs use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from llmd.process.limits import PROC, child_ids, processor_ticks

IDLE = (3, 4)
"""Fields of the first line of ``/proc/stat`` that are no work: idle, and waiting for disks."""
COUNTED = 7
"""Later fields are of other machines, or are counted before."""


class OthersUse(Struct, frozen=True):
    used: float
    """Processors that other programs keep busy, on average."""
    processors: int
    """Processors of the machine."""


class _Sample(Struct, frozen=True):
    busy: int
    """Ticks of all processors in which they worked."""
    elapsed: int
    """Ticks of all processors."""
    processors: int
    ours: dict[int, int]
    """Ticks of our processes, by id."""


class OtherPrograms:
    """Compares one look at the processors with the one before. Reads ``/proc``: fast, but not free."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        """``pid`` is the process that starts all others of ours."""
        self._pid = pid
        self._proc = proc
        self._before: _Sample | None = None

    def look(self) -> OthersUse | None:
        """Return what others have used since the last call; None at the first, or if the system hides it."""
        before, now = self._before, self._sample()
        self._before = now
        if before is None or now is None or now.elapsed <= before.elapsed:
            return None
        ours = sum(ticks - before.ours.get(pid, 0) for pid, ticks in now.ours.items())
        others = max(0, now.busy - before.busy - ours)
        return OthersUse(others / (now.elapsed - before.elapsed) * now.processors, now.processors)

    def _sample(self) -> _Sample | None:
        try:
            total, *each = (self._proc / "stat").read_text().splitlines()
            ticks = [int(field) for field in total.split()[1 : 1 + COUNTED]]
            processors = sum(line.startswith("cpu") for line in each)
            idle = sum(ticks[index] for index in IDLE)
        except (OSError, ValueError, IndexError):
            return None
        ours = {
            pid: used
            for pid in self._family(self._pid)
            if (used := processor_ticks(pid, proc=self._proc)) is not None
        }
        return _Sample(sum(ticks) - idle, sum(ticks), processors, ours) if processors else None

    def _family(self, pid: int) -> Iterator[int]:
        """Yield a process and all that it has started, which may end meanwhile."""
        yield pid
        for child in child_ids(pid, self._proc):
            yield from self._family(child)
