"""How much main memory this process may still use."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """The smaller of what the machine has available and what the control group leaves.

    Where neither can be read (not Linux) this is 0 only if the machine says so; then ``sysconf`` decides.
    """
    return min(_machine_bytes(), *_cgroup_bytes())


def _machine_bytes() -> int:
    for line in _MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _cgroup_bytes() -> list[int]:
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return [1 << 62]
    return [1 << 62] if limit == "max" else [max(0, int(limit) - used)]
