"""Holds sentences back so that not more than one of a kind is written per second."""

from __future__ import annotations

import math
from collections import defaultdict

EVERY_S = 1.0


class TextLines:
    """Sentences that were not written yet, by kind. Times are seconds of any clock that never goes back."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[str]] = defaultdict(list)
        self._written_at: dict[str, float] = {}

    def add(self, kind: str, sentence: str) -> None:
        """Keep a sentence until there is time for its kind."""
        self._waiting[kind].append(sentence)

    def due(self, now: float) -> list[str]:
        """Return a line for each kind that may be written now. Several sentences become one line."""
        lines = []
        for kind, sentences in list(self._waiting.items()):
            if now - self._written_at.get(kind, -math.inf) >= EVERY_S:
                lines.append(_as_one(sentences))
                self._written_at[kind] = now
                del self._waiting[kind]
        return lines

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until a line is due; None if nothing waits."""
        times = [self._written_at.get(kind, -math.inf) + EVERY_S - now for kind in self._waiting]
        return max(min(times), 0.0) if times else None


def _as_one(sentences: list[str]) -> str:
    last = sentences[-1]
    return last if len(sentences) == 1 else f"{last} ({len(sentences) - 1} more like this.)"
