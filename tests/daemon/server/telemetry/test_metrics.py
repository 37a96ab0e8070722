from __future__ import annotations

import json

import pytest

from llmd.api.errors import LlmdError
from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.metrics import Metrics, outcome


def ended(**fields: object) -> RequestRecord:
    record = RequestRecord(model="tiny", sequences=1)
    for name, value in fields.items():
        setattr(record, name, value)
    return record


@pytest.mark.parametrize(
    ("record", "how"),
    [
        (ended(finish="stop", status=200), "stop"),
        (ended(finish="length", status=200), "length"),
        (ended(status=499), "abort"),
        (ended(status=200), "abort"),
        (ended(status=499, error="request_cancelled", cancelled=LlmdError("cancelled")), "abort"),
        (ended(status=500), "error"),
        (ended(status=200, error="engine_crashed", finish="stop"), "error"),
    ],
)
def test_requests_end_in_one_of_four_ways(record: RequestRecord, how: str) -> None:
    assert outcome(record) == how


async def test_a_request_counts_once_it_has_ended_and_is_live_until_then() -> None:
    metrics = Metrics()
    record = ended(
        prompt_tokens=7, completion_tokens=5, begun=1.0, first_token=2.0, last_token=4.0, finish="stop"
    )
    record.route = "/v1/chat/completions"
    with metrics.feed.watch() as watcher:
        metrics.begin(record)
        assert list(metrics.live.values()) == [record]
        metrics.end(record, 200)
        events = await watcher.next()
    assert events is not None
    (event,) = events
    assert metrics.live == {}
    told = json.loads(event.data)
    assert (told["phase"], told["status"], told["finish"]) == ("end", 200, "stop")
    series = metrics.series["tiny"]
    assert series.finished == {"stop": 1}
    totals = {
        name: getattr(series, name).total for name in ("prompt_len", "answer_len", "decode", "inference")
    }
    assert totals == {"prompt_len": 7, "answer_len": 5, "decode": 2.0, "inference": 3.0}
    assert series.per_output_token.total == 0.5
    assert metrics.replies == {("/v1/chat/completions", 200): 1}


def test_a_request_without_a_model_is_a_reply_alone() -> None:
    metrics = Metrics()
    metrics.end(RequestRecord(), 404)
    assert metrics.replies == {("other", 404): 1}
    assert not metrics.series
    assert metrics.feed.last == 0


async def test_a_request_that_no_engine_has_handled_ends_without_counting() -> None:
    metrics = Metrics()
    with metrics.feed.watch() as watcher:
        metrics.end(RequestRecord("req_1", model="tiny"), 400)
        events = await watcher.next()
    assert events is not None
    (event,) = events
    told = json.loads(event.data)
    assert (told["phase"], told["request_id"], told["state"]) == ("end", "req_1", "ended")
    assert not metrics.series
