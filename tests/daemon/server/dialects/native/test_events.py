from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from llmd.client_connection import connected
from llmd.config import UnixAddress
from llmd.server.dialects.native.events import last_seen
from tests.serving.engine_state import asked
from tests.serving.http import LIMIT_S, chat, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@contextlib.contextmanager
def watching(daemon: RunningDaemon, after: int | None = None) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield events as they arrive."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(UnixAddress(daemon.socket))
    connection.sock.settimeout(LIMIT_S)
    with contextlib.closing(connection):
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        connection.request("GET", "/llmd/events", headers=headers)
        with connection.getresponse() as reply:
            assert reply.headers["Content-Type"].startswith("text/event-stream")
            yield _read(reply)


def _read(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    kind, number = "", ""
    for line in reply:
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            event = json.loads(value)
            assert (event["type"], str(event["number"])) == (kind, number)
            yield event


def until(events: Iterator[dict[str, Any]], request_id: str, phase: str) -> dict[str, Any]:
    """Return the event of a request in that phase."""
    return next(
        event for event in events if (event.get("request_id"), event.get("phase")) == (request_id, phase)
    )


def ask(daemon: RunningDaemon, request_id: str) -> dict[str, Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "seed": 1}
    reply = send(daemon, "POST", "/v1/chat/completions", body, {"x-request-id": request_id})
    usage: dict[str, Any] = reply.json["usage"]
    return usage


def test_a_snapshot_comes_first_and_then_each_request_from_its_begin_to_its_end(
    daemon: RunningDaemon,
) -> None:
    chat(daemon)
    with watching(daemon) as events:
        snapshot = next(events)
        assert snapshot["type"] == "snapshot"
        (state,) = [model for model in snapshot["models"] if model["name"] == MODEL]
        assert state["status"] == "loaded"
        assert state["report"]["kv_blocks_total"] > 0
        usage = ask(daemon, "watched")
        begin, end = until(events, "watched", "begin"), until(events, "watched", "end")
    assert (begin["model"], begin["route"], begin["finish"]) == (MODEL, "/v1/chat/completions", None)
    assert (end["status"], end["prompt_tokens"], end["completion_tokens"]) == (
        200,
        usage["prompt_tokens"],
        usage["completion_tokens"],
    )
    assert end["ttft_ms"] <= end["ms"]
    assert end["queue_ms"] <= end["ttft_ms"]


def requests_of(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    """Return the requests in flight by id."""
    with watching(daemon) as events:
        return {request["request_id"]: request for request in next(events)["requests"]}


def test_each_request_says_how_far_it_is_and_what_it_waits_for(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, slots=1) as daemon, contextlib.ExitStack() as streams:
        for number in range(6):
            body = {"max_tokens": 400, "min_tokens": 400}
            streams.enter_context(asked(daemon, body, headers={"x-request-id": f"stream {number}"}))
        while len(requests := requests_of(daemon)) < 6 or "slots" not in waits(requests):
            pass
    runs = next(one for one in requests.values() if one["state"] == "decode")
    assert runs["prompt_done"] == runs["prompt_tokens"] > 0
    assert runs["kv_blocks"] > 0
    assert runs["waiting_for"] is None
    assert runs["client"] is None
    waiting = next(one for one in requests.values() if one["waiting_for"] == "slots")
    assert (waiting["state"], waiting["kv_blocks"], waiting["prompt_done"]) == ("waiting", 0, 0)


def waits(requests: Mapping[str, Mapping[str, Any]]) -> set[Any]:
    return {one["waiting_for"] for one in requests.values()}


def test_a_request_waits_in_the_queue_for_its_model(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon, watching(daemon) as events:
        ask(daemon, "early")
        begin, end = until(events, "early", "begin"), until(events, "early", "end")
    assert (begin["state"], begin["waiting_for"]) == ("queued", "model")
    assert (end["state"], end["waiting_for"], end["kv_blocks"]) == ("ended", None, 0)
    assert end["prompt_done"] == end["prompt_tokens"] > 0


def test_reports_come_by_themselves(daemon: RunningDaemon) -> None:
    with watching(daemon) as events:
        report = next(event for event in events if event["type"] == "report")
    assert report["processes"]["front"]["descriptors"] > 0


def test_a_client_that_was_cut_off_goes_on_after_its_last_event(daemon: RunningDaemon) -> None:
    with watching(daemon) as events:
        next(events)
        ask(daemon, "first")
        seen = until(events, "first", "begin")["number"]
    ask(daemon, "second")
    with watching(daemon, after=seen) as events:
        assert next(events)["number"] == seen + 1
        assert until(events, "second", "end")["model"] == MODEL


def test_numbers_of_clients_are_numbers() -> None:
    assert [last_seen(text) for text in ("", "x", "-1", "7", "9" * 30)] == [None, None, None, 7, None]


def test_metrics_grow_with_requests(daemon: RunningDaemon) -> None:
    def counted(name: str) -> float:
        reply = send(daemon, "GET", "/metrics")
        assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return sum(
            sample.value
            for family in text_string_to_metric_families(reply.content.decode())
            for sample in family.samples
            if sample.name == name and MODEL in sample.labels.values()
        )

    names = (
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "llmd_inter_token_latency_seconds_count",
    )
    before = [counted(name) for name in names]
    usage = ask(daemon, "counted")
    tokens = usage["completion_tokens"]
    expected = [tokens, usage["prompt_tokens"], tokens - 1]
    assert [counted(name) - old for name, old in zip(names, before, strict=True)] == expected
