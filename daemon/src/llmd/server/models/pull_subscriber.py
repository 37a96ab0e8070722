"""A client that follows a pull."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from llmd.api.errors import LlmdError
from llmd.registry.pull import PullStep

EVERY_S = 0.5
"""A subscriber gets a step at least this often."""


class PullSubscriber:
    """The steps that one client has not received yet.

    A later step of a file replaces an earlier one, so that a slow client costs no memory.
    """

    def __init__(self, seen: Sequence[PullStep]) -> None:
        self._pending = {(step.status, step.digest): step for step in seen}
        self._last: PullStep | None = None
        self._error: LlmdError | None = None
        self._ended = False
        self._changed = asyncio.Event()

    def push(self, step: PullStep) -> None:
        self._pending[step.status, step.digest] = step
        self._changed.set()

    def end(self, error: LlmdError | None) -> None:
        self._ended, self._error = True, error
        self._changed.set()

    async def steps(self) -> AsyncIterator[PullStep]:
        """Yield each step, and repeat the last one if nothing happens for `EVERY_S`.

        Raises:
            LlmdError: the pull failed.
        """
        while True:
            while self._pending:
                self._last = self._pending.pop(next(iter(self._pending)))
                yield self._last
            if self._ended:
                break
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), EVERY_S)
            except TimeoutError:
                if self._last is not None:
                    yield self._last
        if self._error is not None:
            raise self._error
