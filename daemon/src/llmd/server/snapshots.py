"""Snapshots of the whole daemon, for ``/metrics`` and once a second while clients watch its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import structs

from llmd.server.models.served_model import ServedModel
from llmd.server.request_progress import RequestProgress, why_queued
from llmd.server.request_record import RequestRecord
from llmd.server.tasks import OwnedTask
from llmd.server.telemetry.daemon_state import ModelState, processes_of
from llmd.server.telemetry.feed import Watcher
from llmd.server.telemetry.metrics import Metrics

REPORT_S = 1.0


class Snapshots:
    """Use on the event loop only."""

    def __init__(
        self,
        version: str,
        metrics: Metrics,
        served: Callable[[], Sequence[ServedModel]],
        report_s: float = REPORT_S,
    ) -> None:
        self._version = version
        self._metrics = metrics
        self._served = served
        self._report_s = report_s
        self._reporter: OwnedTask | None = None

    async def metrics(self) -> bytes:
        """Return the text of ``/metrics``."""
        # Imported here: only daemons whose metrics are requested need the library.
        from llmd.server.telemetry.exposition import exposition

        return exposition(self._version, self._metrics, await self._states())

    async def snapshot(self) -> dict[str, Any]:
        """Return the state of the daemon before the first event that a watcher gets."""
        report = await self._report()
        requests = [record.as_event() for record in self._requests()]
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
            for record in self._requests():
                self._metrics.feed.emit("request", {"phase": "progress", **record.as_event()})

    def _requests(self) -> list[RequestRecord]:
        """Return the requests in flight that need a model."""
        return [record for record in self._metrics.live.values() if record.model]

    async def _report(self) -> dict[str, Any]:
        """Return the state of all models, and record in each request how far it has come."""
        states = await self._states(sequences=True)
        served = {model.name: model for model in self._served()}
        for record in self._requests():
            if (model := served.get(record.model)) is not None:
                _note_queued(record, model)
        return {"models": msgspec.to_builtins(states), "processes": msgspec.to_builtins(processes_of(states))}

    async def _states(self, *, sequences: bool = False) -> list[ModelState]:
        return list(await asyncio.gather(*(_state(model, sequences=sequences) for model in self._served())))


async def _state(model: ServedModel, *, sequences: bool) -> ModelState:
    supervisor = model.supervisor
    report = await supervisor.report(sequences=sequences)
    waiting = report.waiting if report else supervisor.waiting
    if report is not None:  # the progress of requests is sent by request
        report = structs.replace(report, sequences=None)
    return ModelState(model.name, model.status, waiting, supervisor.pid, report)


def _note_queued(record: RequestRecord, model: ServedModel) -> None:
    """Record what a request waits for that the engine does not have, also because it is being restarted."""
    if record.progress.state == "queued" or model.status == "loading":
        record.progress = RequestProgress(waiting_for=why_queued(model.status, model.leases.waits_for))
