"""How long a child process may take: in processor time, of which a busy machine gives it little in each second."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

SHORTEST_WAIT_S = 0.1


class TimeSpent(msgspec.Struct, frozen=True):
    """What a child has taken so far.

    ``processor_s`` is the time of all its threads and of the processes that it has waited for; ``delayed_s`` is how long
    one of its threads could have computed, and other processes had the processors.
    """

    processor_s: float
    wall_s: float
    delayed_s: float = 0.0

    @property
    def is_starved(self) -> bool:
        """Whether it spent most of the time on waiting for a processor."""
        return self.delayed_s > self.wall_s / 2


class TimeLimit(msgspec.Struct, frozen=True):
    """A child ends after ``processor_s`` seconds of processor time, and in any case after ``wall_s`` seconds.

    Several threads use more than a second of processor time in each second. A child is therefore never ended before
    ``processor_s`` seconds have passed, too.
    """

    processor_s: float
    wall_s: float

    def is_reached(self, spent: TimeSpent) -> bool:
        """Whether the child has to end."""
        return spent.wall_s >= self.wall_s or _computed_s(spent) >= self.processor_s

    def wait_s(self, spent: TimeSpent) -> float:
        """How long to wait before the child's time is worth another look."""
        computing_s = max(self.processor_s - _computed_s(spent), SHORTEST_WAIT_S)
        return max(0.0, min(computing_s, self.wall_s - spent.wall_s))


# One limit for all backends. A toolkit that compiles kernels at run time will need a longer one, and one of its own.
PROBE_LIMIT = TimeLimit(processor_s=10.0, wall_s=60.0)


def benchmark_limit(budget_s: float) -> TimeLimit:
    """The limit of a benchmark of ``budget_s`` seconds, which opens the device first."""
    return TimeLimit(processor_s=budget_s + 30.0, wall_s=budget_s + 60.0)


class MachineLoad(msgspec.Struct, frozen=True):
    """The load average of the last minute, and the processors that it is for."""

    average: float
    num_processors: int

    @classmethod
    def now(cls) -> MachineLoad:
        return cls(os.getloadavg()[0], os.cpu_count() or 1)

    def __str__(self) -> str:
        return f"the load of the machine was {self.average:.1f} on {self.num_processors} processors"


def processor_seconds(process_id: int) -> float:
    """Processor time that a process and those that it waited for have used; 0 where the system does not say."""
    try:
        after_name = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, after_name[11:15])) / os.sysconf("SC_CLK_TCK")  # utime, stime, cutime, cstime


def delayed_seconds(process_id: int) -> float:
    """How long the most delayed thread of a process has waited for a processor; 0 where the system does not say."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{process_id}/task").glob("*/schedstat")]
    except OSError:  # a thread has just ended
        return 0.0
    return max((int(thread.split()[1]) / 1e9 for thread in threads), default=0.0)


def _computed_s(spent: TimeSpent) -> float:
    return min(spent.processor_s, spent.wall_s)
