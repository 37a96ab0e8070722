"""How far pulls are: files, rates and the time that is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from llmd.api.byte_size import format_bytes
from llmd_tui.widgets.bars import progress
from llmd_tui.widgets.plain_text import one_line
from llmd_tui.widgets.words import seconds

RATE_S = 10.0
"""A rate is that of these last seconds."""
LEAST_S = 1.0
"""A rate over less time says nothing."""
FILES_SHOWN = 3
BAR_WIDTH = 20


class PulledFile(msgspec.Struct, frozen=True):
    """A file that is downloaded."""

    path: str
    total: int
    completed: int = 0

    @property
    def is_whole(self) -> bool:
        return self.completed >= self.total


class PullProgress:
    """One pull, from the steps that the daemon sends. Times are seconds of any clock that never goes back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "asking the hub"
        self.files: dict[str, PulledFile] = {}
        """By digest, in the order in which they began."""
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, step: Mapping[str, Any], now: float) -> None:
        """Take in a step of ``/llmd/pull``."""
        self.status = one_line(str(step.get("status", "")))
        digest = str(step.get("digest", ""))
        if not digest or not step.get("total"):
            return
        is_new = digest not in self.files
        completed = int(step.get("completed") or 0)
        self.files[digest] = PulledFile(
            one_line(str(step.get("file", digest))), int(step["total"]), completed
        )
        if is_new and completed:  # was there before this pull: it must not count as fast
            self._seen = deque((at, done + completed) for at, done in self._seen)
        self._seen.append((now, self.completed))
        while len(self._seen) > 2 and now - self._seen[0][0] > RATE_S:
            self._seen.popleft()

    @property
    def total(self) -> int:
        """Bytes of the files that are known so far."""
        return sum(file.total for file in self.files.values())

    @property
    def completed(self) -> int:
        return sum(file.completed for file in self.files.values())

    @property
    def bytes_per_s(self) -> float | None:
        """None until it is known."""
        if len(self._seen) < 2:
            return None
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_at - first_at) if last_at - first_at >= LEAST_S else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the known files are there, at the present rate."""
        rate = self.bytes_per_s
        return (self.total - self.completed) / rate if rate else None


def lines(pull: PullProgress, *, ascii_only: bool = False) -> Sequence[str]:
    """Return a pull in words: a line for all of it, and one for each file that is being downloaded."""
    whole = sum(file.is_whole for file in pull.files.values())
    parts = [f"Pulling {pull.name}: {pull.status}"]
    if pull.files:
        parts = [
            f"Pulling {pull.name}: {whole} of {len(pull.files)} files",
            f"{format_bytes(pull.completed)} of {format_bytes(pull.total)}",
        ]
    if (rate := pull.bytes_per_s) is not None:
        parts.append(f"{format_bytes(round(rate))}/s")
    if (left := pull.left_s) is not None:
        parts.append(f"{seconds(left * 1e3)} left")
    running = [file for file in pull.files.values() if not file.is_whole][-FILES_SHOWN:]
    return [", ".join(parts), *(f"  {_bar(file, ascii_only=ascii_only)}  {file.path}" for file in running)]


def _bar(file: PulledFile, *, ascii_only: bool) -> str:
    amount = f"{format_bytes(file.completed)} of {format_bytes(file.total)}"
    return f"{progress(file.completed, file.total, BAR_WIDTH, ascii_only=ascii_only)}  {amount:<22}"
