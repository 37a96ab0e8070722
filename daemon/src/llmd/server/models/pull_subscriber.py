"""One client that waits for a pull: what it has not been told yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from llmd.api.errors import LlmdError
from llmd.registry.pull import PullStep

EVERY_S = 0.5
"""The longest silence of a subscriber."""


class PullSubscriber:
    """What one client has not yet been told. Steps of one file replace each other, so a slow client costs nothing."""

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
        """What happens, and the last step again where nothing does.

        Raises:
            LlmdError: why the pull failed.
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
