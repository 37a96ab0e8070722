"""The processes that a process under test has started."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the child processes of a process, also those that have ended and for which it has not waited."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for text in lists for child in text.read_text().split()]
