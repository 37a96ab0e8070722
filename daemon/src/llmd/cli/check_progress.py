"""Progress of a conformance run: a line on a terminal, nothing elsewhere (each result is a line anyway)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TypeVar

T = TypeVar("T")

CLEAR = "\r\033[K"
LEAST_SHARE = 0.02
"""Share of the work that must be done before the remaining time is estimated."""


class CheckProgress:
    """The last line of a terminal. ``clock`` returns seconds."""

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream.isatty() else None
        self._clock = clock

    def over(self, cases: Sequence[T], cost: Callable[[T], int]) -> Iterator[T]:
        """Yield the cases; show how many are done and the time left, estimated from their ``cost``."""
        total, done, start_s = sum(map(cost, cases)), 0, self._clock()
        try:
            for number, case in enumerate(cases):
                self._draw(f"{number} of {len(cases)} cases{_left(done, total, self._clock() - start_s)}")
                yield case
                done += cost(case)
        finally:
            self.clear()

    def clear(self) -> None:
        """Remove the line before something else is written."""
        self._draw("")

    def _draw(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(CLEAR + text)
            self._stream.flush()


def _left(done: int, total: int, elapsed_s: float) -> str:
    if done < LEAST_SHARE * total:
        return ""
    left_s = elapsed_s * (total - done) / done
    return f", about {_duration(left_s)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
