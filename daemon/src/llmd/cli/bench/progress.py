"""Progress of a load on standard error: in place on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from llmd.benchmark.timeline import Outcome

TERMINAL_S = 0.2
PIPE_S = 10.0
CLEAR = "\r\033[K"


class Progress:
    """Counts the outcomes of ``total`` requests. Drawn rarely: drawing disturbs the measurement."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._is_terminal = sys.stderr.isatty()
        self._drawn_s = clock()
        self._num_ended = 0
        self._num_failed = 0

    def ended(self, outcome: Outcome) -> None:
        self._num_ended += 1
        self._num_failed += bool(outcome.error)
        now_s = self._clock()
        if now_s - self._drawn_s >= (TERMINAL_S if self._is_terminal else PIPE_S):
            self._drawn_s = now_s
            self._draw()

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._is_terminal:
            click.echo(CLEAR, nl=False, err=True, color=True)

    def _draw(self) -> None:
        failed = f", {self._num_failed} failed" if self._num_failed else ""
        text = f"{self._num_ended}/{self._total} requests{failed}"
        if self._is_terminal:
            click.echo(CLEAR + text, nl=False, err=True, color=True)
        else:
            click.echo(text, err=True)
