"""What the system says of a process under test."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the child processes of a process, also those that have ended and for which it has not waited."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for text in lists for child in text.read_text().split()]


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has had so far."""
    (line,) = (
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")
    )
    return int(line.split()[1]) << 10
