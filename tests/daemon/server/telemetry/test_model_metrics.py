from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from llmd.api.messages import Loading, Replanned, StageReport
from llmd.api.results import Started
from llmd.server.request_record import QueueEntry, RequestRecord
from llmd.server.telemetry.feed import Event, Feed, Watcher
from llmd.server.telemetry.model_metrics import ModelMetrics, SequenceRecord
from llmd.server.telemetry.series import Series


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("llmd.server.telemetry.model_metrics.time.monotonic", clock)
    return clock


@pytest.fixture
def series() -> Series:
    return Series()


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def watch(series: Series, feed: Feed) -> ModelMetrics:
    return ModelMetrics("tiny", series, feed)


@pytest.fixture
def watcher(feed: Feed) -> Iterator[Watcher]:
    with feed.watch() as watcher:
        yield watcher


async def told(watcher: Watcher) -> list[tuple[str, dict[str, Any]]]:
    return [(event.type, fields_of(event)) for event in await watcher.next() or ()]


def fields_of(event: Event) -> dict[str, Any]:
    fields = json.loads(event.data)
    assert (fields.pop("type"), fields.pop("number")) == (event.type, event.number)
    return dict(fields)


def test_times_of_a_sequence_are_those_of_its_tokens(
    clock: Clock, series: Series, watch: ModelMetrics
) -> None:
    request = RequestRecord(started=99.0)
    sequence = SequenceRecord(request, QueueEntry("", 1, 10), 100.0, leads=True)
    watch.submitted(sequence)
    clock.now = 103.5  # the first of two prefill steps is done
    watch.begun(sequence, Started(0, cached_tokens=4, running_s=0.5))
    for clock.now in (104.0, 104.5, 106.0):
        watch.token(sequence)
    assert (request.queue_s, request.begun, request.first_token, request.last_token) == (
        3.0,
        103.0,
        104.0,
        106.0,
    )
    assert (request.prompt_tokens, request.cached_tokens, request.completion_tokens) == (10, 4, 3)
    assert (series.prompt_tokens, series.cached_tokens, series.answer_tokens) == (10, 4, 3)
    totals = {
        name: getattr(series, name).total for name in ("first_token", "prefill", "queue", "inter_token")
    }
    assert totals == {"first_token": 5.0, "prefill": 1.0, "queue": 3.0, "inter_token": 2.0}


def test_a_sequence_that_runs_on_waited_once(clock: Clock, series: Series, watch: ModelMetrics) -> None:
    sequence = SequenceRecord(RequestRecord(), QueueEntry("", 1, 10), 100.0, leads=True)
    for clock.now in (101.0, 109.0):
        watch.begun(sequence, Started(0, cached_tokens=2))
    assert (series.queue.count, series.cached_tokens) == (1, 2)


def test_choices_share_their_prompt_and_its_first_token(
    clock: Clock, series: Series, watch: ModelMetrics
) -> None:
    request = RequestRecord(started=100.0)
    for place in range(3):
        sequence = SequenceRecord(request, QueueEntry("", 1, 10), 100.0, leads=place == 0)
        watch.submitted(sequence)
        watch.begun(sequence, Started(place, cached_tokens=8))
        watch.token(sequence)
    assert (series.prompt_tokens, series.cached_tokens, series.answer_tokens) == (10, 8, 3)
    assert (series.first_token.count, series.inter_token.count) == (1, 0)


def test_answers_that_come_at_once_have_a_first_token_and_none_between(
    clock: Clock, series: Series, watch: ModelMetrics
) -> None:
    request = RequestRecord(started=99.0)
    clock.now = 104.0
    watch.found(SequenceRecord(request, QueueEntry("", 3, 10), 100.0, leads=True), 24)
    assert (request.first_token, request.completion_tokens, series.answer_tokens) == (104.0, 24, 24)
    assert (series.first_token.total, series.inter_token.count) == (5.0, 0)


async def test_what_becomes_of_a_model_is_told(series: Series, watch: ModelMetrics, watcher: Watcher) -> None:
    watch.loading(Loading("read", 1, 2))
    watch.placed(Replanned(1, (StageReport("cpu", "layers 0-1", 1, 1, 1),), 64, ("f32",)))
    watch.died("SIGKILL", starts_again=True)
    watch.died("SIGKILL", starts_again=False)
    watch.closed()
    assert [(kind, fields["phase"]) for kind, fields in await told(watcher)] == [
        ("model", "loading"),
        ("model", "replanned"),
        ("model", "restarting"),
        ("model", "failed"),
        ("model", "unloaded"),
    ]
    assert (series.restarts, series.replans) == (1, 1)


async def test_a_request_begins_with_its_sizes(watch: ModelMetrics, watcher: Watcher) -> None:
    watch.opened(RequestRecord("req_1", key="ann"), 2)
    ((kind, fields),) = await told(watcher)
    assert kind == "request"
    assert (fields["phase"], fields["request_id"], fields["key"], fields["model"]) == (
        "begin",
        "req_1",
        "ann",
        "tiny",
    )
