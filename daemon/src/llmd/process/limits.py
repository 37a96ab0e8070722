"""Time limits of child processes, in processor time,
because a busy machine gives a process little of each second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

PROC = Path("/proc")
SHORTEST_WAIT_S = 0.1
# A device that sleeps and a busy machine both cost a child wall time, but no processor time.
WALL_FACTOR = 6.0


class TimeSpent(msgspec.Struct, frozen=True):
    """The time that a child process has taken so far."""

    processor_s: float
    """Processor time of all its threads, and of its children that ended and were waited for."""
    wall_s: float
    """Time since it was started or got its task."""
    delayed_s: float = 0.0
    """How long its most delayed thread was ready to run while other processes had the processors."""

    @property
    def is_starved(self) -> bool:
        """Whether it spent most of the time waiting for a processor."""
        return self.delayed_s > self.wall_s / 2


class TimeLimit(msgspec.Struct, frozen=True):
    """Limits after which a child process is killed.

    Several threads together use more than a second of processor time per second, so a child is also never
    killed before ``processor_s`` seconds of wall time have passed.
    """

    processor_s: float
    """Processor time that it may use."""
    wall_s: float
    """Wall time after which it is killed in any case."""

    @classmethod
    def of_processor_time(cls, processor_s: float) -> TimeLimit:
        """Return a limit of processor time, with `WALL_FACTOR` times as much wall time."""
        return cls(processor_s, WALL_FACTOR * processor_s)

    @classmethod
    def of_wall_time(cls, wall_s: float) -> TimeLimit:
        """Return a limit of wall time alone."""
        return cls(wall_s, wall_s)

    def is_reached(self, spent: TimeSpent) -> bool:
        """Whether the child must be killed."""
        return spent.wall_s >= self.wall_s or _computed_s(spent) >= self.processor_s

    def wait_s(self, spent: TimeSpent) -> float:
        """Return the seconds until the limit can be reached, after which the caller should check again."""
        computing_s = max(self.processor_s - _computed_s(spent), SHORTEST_WAIT_S)
        return max(0.0, min(computing_s, self.wall_s - spent.wall_s))


class MachineLoad(msgspec.Struct, frozen=True):
    """How busy the machine is."""

    average: float
    """The load average of the last minute."""
    num_processors: int

    @classmethod
    def now(cls) -> MachineLoad:
        return cls(os.getloadavg()[0], os.cpu_count() or 1)

    def __str__(self) -> str:
        return f"the load of the machine was {self.average:.1f} on {self.num_processors} processors"


def processor_seconds(process_id: int, *, with_children: bool = True, proc: Path = PROC) -> float | None:
    """Return the processor time that a process has used; None if the system does not say.

    ``with_children`` includes the time of children that have ended and that the process has waited for.
    """
    ticks = processor_ticks(process_id, with_children=with_children, proc=proc)
    return None if ticks is None else ticks / os.sysconf("SC_CLK_TCK")


def processor_ticks(process_id: int, *, with_children: bool = True, proc: Path = PROC) -> int | None:
    """Return `processor_seconds` in the unit of ``/proc/stat``."""
    last = 15 if with_children else 13  # utime, stime, cutime, cstime
    try:
        # The name in parentheses may contain spaces and parentheses.
        after_name = (proc / str(process_id) / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11:last]))
    except (OSError, ValueError):
        return None


def child_ids(process_id: int, proc: Path = PROC) -> Iterator[int]:
    """Yield the children of a process, which may end meanwhile; none if the system does not say."""
    for path in (proc / str(process_id) / "task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:  # the thread has just ended
            continue
        yield from map(int, children)


def delayed_seconds(process_id: int) -> float:
    """Return how long the most delayed thread of a process has waited for a processor;
    0 if the system does not say.
    """
    try:
        threads = [path.read_text() for path in Path(f"/proc/{process_id}/task").glob("*/schedstat")]
    except OSError:  # a thread has just ended
        return 0.0
    return max((int(thread.split()[1]) / 1e9 for thread in threads), default=0.0)


def _computed_s(spent: TimeSpent) -> float:
    return min(spent.processor_s, spent.wall_s)
