"""What processes of this machine use, from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def children(pid: int, naming: str) -> list[int]:
    """The children of a process whose command names something."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed if naming in Path(f"/proc/{child}/cmdline").read_text()]


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
