"""Counts requests in flight, so that a shutdown can wait for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from llmd.server.errors import UnavailableError

DRAIN_RETRY_S = 2


class Activity:
    """Counts requests in flight; while it drains, new ones are refused."""

    def __init__(self) -> None:
        self.draining = False
        self.running = 0
        self._begun = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count a request while it runs.

        Raises:
            UnavailableError: the daemon is shutting down.
        """
        if self.draining:
            raise shutting_down()
        self.running += 1
        self._begun += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()

    async def quiet(self, seconds: float) -> None:
        """Wait until no request has run for ``seconds``."""
        begun = -1
        while begun != self._begun:
            await self._idle.wait()
            begun = self._begun
            await asyncio.sleep(seconds)

    async def drain(self, limit_s: float) -> bool:
        """Refuse new requests and wait for those in flight; return whether all ended within the limit."""
        self.draining = True
        try:
            await asyncio.wait_for(self._idle.wait(), limit_s)
        except TimeoutError:
            return False
        return True


def shutting_down() -> UnavailableError:
    """Return the error for requests that arrive during the shutdown."""
    return UnavailableError(
        "the daemon is shutting down",
        code="shutting_down",
        hint="retry the request",
        retry_after_s=DRAIN_RETRY_S,
    )
