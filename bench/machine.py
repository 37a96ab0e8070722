"""The machine of a measurement: its CPU, and how busy other processes keep it."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path

from bench.servers import family_cpu_s

PR_SET_CHILD_SUBREAPER = 36
KERNEL_THREADS = 2
"""The PID of kthreadd, the parent of all kernel threads."""
INTERESTING = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8", "asimddp", "i8mm")


def describe() -> str:
    """Return the CPU's model, family, count and the flags that matter to kernels."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = [flag for flag in INTERESTING if flag in fields.get("flags", fields.get("Features", "")).split()]
    name = fields.get("model name", "unknown CPU")
    kind = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{name} ({kind}), {len(os.sched_getaffinity(0))} CPUs, {' '.join(flags)}"


class Occupation:
    """How much CPU time other processes have used since this object was created."""

    def __init__(self, look: Callable[[], tuple[float, float, float]] | None = None) -> None:
        """``look`` returns the time, and the CPU time of all processes and of this one so far."""
        self._look = look or _look
        self._began, self._busy_s, self._own_s = self._look()

    def available_s(self) -> float:
        """Return the available CPU time in seconds."""
        now, _, _ = self._look()
        return self._available_s(now)

    def of_others(self) -> float:
        """Return the share of the CPU time used by others; descendants of this process are not others."""
        now, busy, own = self._look()
        return max(0.0, (busy - self._busy_s - (own - self._own_s)) / self._available_s(now))

    def _available_s(self, now: float) -> float:
        return (now - self._began) * len(os.sched_getaffinity(0))


def _look() -> tuple[float, float, float]:
    return time.monotonic(), busy_s(), own_s()


def busy_s() -> float:
    """Return the CPU seconds used by processes since boot, plus those taken by other virtual machines.

    Interrupts and kernel threads are excluded: a side that reads a file from the disk causes both.
    """
    ticks = busy_ticks(Path("/proc/stat").read_text().splitlines()[0])
    return ticks / os.sysconf("SC_CLK_TCK") - family_cpu_s(KERNEL_THREADS)


def busy_ticks(line: str) -> int:
    """Sum user, nice, system and steal of the first line of /proc/stat, proc(5); user includes guests."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = (int(field) for field in line.split()[1:9])
    return user + nice + system + steal


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that their CPU time counts as ours.

    See prctl(2), PR_SET_CHILD_SUBREAPER.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def own_s() -> float:
    """Return the CPU time of this process and its descendants."""
    return family_cpu_s(os.getpid())
