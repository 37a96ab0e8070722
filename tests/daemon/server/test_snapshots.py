from __future__ import annotations

import asyncio
import json

from llmd.engine.placement.prediction import Prediction
from llmd.server.model_states import ModelStates
from llmd.server.request_record import RequestRecord
from llmd.server.snapshots import Snapshots
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.feed import Event
from llmd.server.telemetry.metrics import Metrics


async def no_facts() -> DeviceFacts:
    return DeviceFacts()


async def nothing_predicted(_models: object) -> dict[str, Prediction]:
    return {}


def states_of(metrics: Metrics) -> ModelStates:
    """Return the states of a daemon that serves nothing."""
    return ModelStates(metrics, tuple, no_facts, nothing_predicted)


async def test_reports_and_progress_come_as_long_as_somebody_watches() -> None:
    metrics = Metrics()
    metrics.begin(RequestRecord("req_1", model="tiny"))
    metrics.begin(RequestRecord("req_2"))
    snapshots = Snapshots("1", metrics, states_of(metrics), report_s=0.0)
    await asyncio.sleep(0)
    assert metrics.feed.last == 0
    async with snapshots.watch(None) as watcher:
        events: list[Event] = []
        while len(events) < 2:
            events += await watcher.next() or ()
    assert [event.type for event in events[:2]] == ["report", "request"]
    report, progress = (json.loads(event.data) for event in events[:2])
    assert "front" in report["processes"]
    assert (progress["phase"], progress["request_id"]) == ("progress", "req_1")
    last = metrics.feed.last
    await asyncio.sleep(0)
    assert metrics.feed.last == last


async def test_snapshot_has_models_processes_and_the_requests_that_engines_answer() -> None:
    metrics = Metrics()
    metrics.begin(RequestRecord("req_1", model="tiny"))
    metrics.begin(RequestRecord("req_2"))
    snapshot = await Snapshots("1", metrics, states_of(metrics)).snapshot()
    assert (snapshot["version"], snapshot["models"]) == ("1", [])
    assert [request["request_id"] for request in snapshot["requests"]] == ["req_1"]
