"""Snapshots of the whole daemon, for ``/metrics`` and once a second while clients watch its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from llmd.server.model_states import ModelStates
from llmd.server.tasks import OwnedTask
from llmd.server.telemetry.daemon_state import processes_of
from llmd.server.telemetry.feed import Watcher
from llmd.server.telemetry.metrics import Metrics

REPORT_S = 1.0


class Snapshots:
    """Use on the event loop only."""

    def __init__(
        self,
        version: str,
        metrics: Metrics,
        states: ModelStates,
        report_s: float = REPORT_S,
    ) -> None:
        self._version = version
        self._metrics = metrics
        self.states = states
        self._report_s = report_s
        self._reporter: OwnedTask | None = None

    async def metrics(self) -> bytes:
        """Return the text of ``/metrics``."""
        # Imported here: only daemons whose metrics are requested need the library.
        from llmd.server.telemetry.exposition import exposition

        return exposition(self._version, self._metrics, await self.states.counters())

    async def snapshot(self) -> dict[str, Any]:
        """Return the state of the daemon before the first event that a watcher gets."""
        report = await self._report()
        requests = [record.as_event() for record in self._metrics.requests]
        return {"version": self._version, **report, "requests": requests}

    @asynccontextmanager
    async def watch(self, after: int | None) -> AsyncIterator[Watcher]:
        """Watch the feed of events; reports are sent while there is at least one watcher.

        Raises:
            BusyError: too many clients are watching.
        """
        with self._metrics.feed.watch(after) as watcher:
            if self._reporter is None:
                self._reporter = OwnedTask(self._report_often(), "reports for watchers")
            try:
                yield watcher
            finally:
                if self._metrics.feed.watchers == 1 and self._reporter is not None:
                    reporter, self._reporter = self._reporter, None
                    await reporter.close()

    async def _report_often(self) -> None:
        while True:
            await asyncio.sleep(self._report_s)
            self._metrics.feed.emit("report", await self._report())
            for record in self._metrics.requests:
                self._metrics.feed.emit("request", {"phase": "progress", **record.as_event()})

    async def _report(self) -> dict[str, Any]:
        states = await self.states.whole()
        return {"models": msgspec.to_builtins(states), "processes": msgspec.to_builtins(processes_of(states))}
