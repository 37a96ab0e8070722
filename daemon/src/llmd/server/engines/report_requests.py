"""Pending requests for an engine's counters."""

from __future__ import annotations

import asyncio

from llmd.api.errors import EngineCrashedError
from llmd.api.messages import Report

REPORT_LIMIT_S = 2.0
"""An engine that is busy with one step for longer than this gives no report."""


class ReportRequests:
    """Pending requests. One `Report` answers all of them. Use on the event loop only."""

    def __init__(self) -> None:
        self._pending: list[asyncio.Future[Report]] = []

    async def wait(self) -> Report | None:
        """Wait for the next report; None if the engine dies or takes longer than `REPORT_LIMIT_S`."""
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._pending.append(answer)
        try:
            return await asyncio.wait_for(answer, REPORT_LIMIT_S)
        except (EngineCrashedError, TimeoutError):
            return None

    def answer(self, report: Report) -> None:
        """Give a report to all pending requests."""
        for pending in self._take():
            pending.set_result(report)

    def fail(self, how: str) -> None:
        """End all requests because the engine died; ``how`` describes its end."""
        for pending in self._take():
            pending.set_exception(EngineCrashedError(f"the engine died ({how})"))

    def _take(self) -> list[asyncio.Future[Report]]:
        taken, self._pending = self._pending, []
        return [pending for pending in taken if not pending.done()]
