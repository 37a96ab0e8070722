"""Background tasks with a name and an owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")
logger = logging.getLogger(__name__)


class OwnedTask:
    """A background task. Its owner awaits `close`; its exceptions are logged."""

    def __init__(self, work: Coroutine[None, None, None], name: str) -> None:
        self._task = asyncio.Task(work, name=name)
        self._task.add_done_callback(_log_failure)

    async def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the work to end by itself; return whether it has ended."""
        await asyncio.wait({self._task}, timeout=timeout_s)
        return self._task.done()

    async def close(self) -> None:
        """Cancel the work and wait for it to end."""
        self._task.cancel()
        await self.join()


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("task_failed", exc_info=error, extra={"task": task.get_name()})


async def unless(event: asyncio.Event, work: Coroutine[None, None, T], name: str) -> T | None:
    """Return the result of the work, or cancel it and return None if the event is set first."""
    working = asyncio.Task(work, name=name)
    waiting = asyncio.Task(event.wait(), name=f"end of {name}")
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
