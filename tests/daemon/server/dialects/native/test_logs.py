from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from llmd.client_connection import connected
from llmd.config import UnixAddress
from tests.serving.http import LIMIT_S, Reply, chat, send
from tests.serving.running import MODEL, RunningDaemon


def ask(daemon: RunningDaemon, request_id: str) -> Reply:
    fields = {"model": MODEL, "prompt": "my secret", "max_tokens": 2, "ignore_eos": True}
    return send(daemon, "POST", "/v1/completions", fields, {"x-request-id": request_id})


def records(daemon: RunningDaemon, query: str = "") -> list[dict[str, Any]]:
    reply = send(daemon, "GET", f"/llmd/logs{query}")
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    assert b"my secret" not in reply.content
    return [json.loads(line) for line in reply.content.splitlines()]


def ids(found: list[dict[str, Any]]) -> list[str | None]:
    return [record["fields"].get("request_id") for record in found]


def test_requests_and_loads_are_kept_without_any_flag(daemon: RunningDaemon) -> None:
    ask(daemon, "logged")
    found = records(daemon, "?lines=2000")
    record = found[ids(found).index("logged")]
    assert (record["event"], record["level"], record["model"]) == ("request", "info", MODEL)
    assert record["fields"]["completion_tokens"] == 2


def test_the_last_lines_are_those_of_the_level(daemon: RunningDaemon) -> None:
    for number in range(3):
        ask(daemon, f"line {number}")
    found = [one for one in ids(records(daemon)) if one is not None]
    assert [one for one in found if one.startswith("line")][-3:] == ["line 0", "line 1", "line 2"]
    assert len(records(daemon, "?lines=1")) == 1
    assert records(daemon, "?lines=0") == []
    assert all(record["level"] == "error" for record in records(daemon, "?level=error"))


@contextlib.contextmanager
def following(
    daemon: RunningDaemon, query: str, after: int | None = None
) -> Iterator[Iterator[dict[str, Any]]]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(UnixAddress(daemon.socket))
    connection.sock.settimeout(LIMIT_S)
    with contextlib.closing(connection):
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        connection.request("GET", f"/llmd/logs?follow=1{query}", headers=headers)
        with connection.getresponse() as reply:
            data = (line.decode().partition("data: ")[2] for line in reply)
            yield (json.loads(one) for one in data if one)


def test_who_follows_gets_the_last_records_and_then_each_new_one(daemon: RunningDaemon) -> None:
    ask(daemon, "old")
    with following(daemon, "&lines=1") as events:
        first = next(events)
        assert (first["type"], first["fields"]["request_id"]) == ("log", "old")
        ask(daemon, "new")
        assert next(events)["fields"]["request_id"] == "new"
    ask(daemon, "missed")
    with following(daemon, "", after=first["number"]) as events:
        assert [next(events)["fields"]["request_id"] for _ in range(2)] == ["new", "missed"]


def test_looking_at_the_daemon_fills_no_log(daemon: RunningDaemon) -> None:
    ask(daemon, "before")
    for path in ("/llmd/ps", "/llmd/logs", f"/llmd/kv?model={MODEL}", "/llmd/plan", "/llmd/devices"):
        assert send(daemon, "GET", path).status == 200
    assert ids(records(daemon, "?lines=1")) == ["before"]


@pytest.mark.parametrize("query", ["?lines=-1", "?lines=2001", "?lines=x", "?level=loud"])
def test_values_that_mean_nothing_are_refused(daemon: RunningDaemon, query: str) -> None:
    chat(daemon)
    reply = send(daemon, "GET", f"/llmd/logs{query}")
    assert (reply.status, reply.error["code"]) == (400, "invalid_value")
