"""Pending requests for an engine's counters."""

from __future__ import annotations

import asyncio

from llmd.api.errors import EngineCrashedError
from llmd.api.reports import Report

REPORT_LIMIT_S = 2.0
"""An engine that is busy with one step for longer than this gives no report."""


class ReportRequests:
    """Pending requests. One `Report` answers all that ask for no more than it has. Use on the event loop
    only.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[asyncio.Future[Report], bool]] = []

    async def wait(self, *, sequences: bool = False) -> Report | None:
        """Wait for the next report; None if the engine dies or takes longer than `REPORT_LIMIT_S`.

        ``sequences``: only one with the states of sequences.
        """
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._pending.append((answer, sequences))
        try:
            return await asyncio.wait_for(answer, REPORT_LIMIT_S)
        except (EngineCrashedError, TimeoutError):
            return None

    def answer(self, report: Report) -> None:
        """Give a report to the pending requests that it answers."""
        for pending in self._take(whole=report.sequences is not None):
            pending.set_result(report)

    def fail(self, how: str) -> None:
        """End all requests because the engine died; ``how`` describes its end."""
        for pending in self._take(whole=True):
            pending.set_exception(EngineCrashedError(f"the engine died ({how})"))

    def _take(self, *, whole: bool) -> list[asyncio.Future[Report]]:
        """Take the requests; unless ``whole``, leave those that ask for sequences."""
        taken = [pending for pending, sequences in self._pending if whole or not sequences]
        self._pending = [] if whole else [entry for entry in self._pending if entry[1]]
        return [pending for pending in taken if not pending.done()]
