"""Requests that others cancel: the engine drops them, and their clients get an error that they can read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving.engine_state import asked, report, wait_until
from tests.serving.http import Reply, complete, open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

LONG = {"max_tokens": 1 << 14, "ignore_eos": True}
ID = {"x-request-id": "unwanted"}


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, probes: Any) -> Iterator[RunningDaemon]:
    """A daemon with one slot, whose answers take long."""
    directories = directories_below(tmp_path_factory.mktemp("busy"), cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories, slots=1) as daemon:
        yield daemon


def cancel(daemon: RunningDaemon, request_id: str = ID["x-request-id"]) -> Reply:
    return send(daemon, "POST", "/llmd/cancel", {"request_id": request_id})


@pytest.mark.parametrize("choices", [1, 2])
def test_a_running_answer_that_is_not_streamed_becomes_an_error(busy: RunningDaemon, choices: int) -> None:
    with asked(busy, {**LONG, "n": choices}, headers=ID) as connection:
        wait_until(busy, running=1, waiting=choices - 1)
        assert cancel(busy).json["cancelled"] == "unwanted"
        reply = connection.getresponse()
        error = json.loads(reply.read())["error"]
    assert (reply.status, error["code"], reply.headers["x-should-retry"]) == (
        499,
        "request_cancelled",
        "false",
    )
    wait_until(busy, running=0, waiting=0, kv_blocks_used=0)


def test_a_stream_ends_with_an_error_and_not_in_the_middle(busy: RunningDaemon) -> None:
    with open_stream(busy, LONG, headers=ID) as reply:
        reply.readline()
        assert cancel(busy).status == 200
        *_, last = [line for line in reply.read().decode().split("\n") if line]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "request_cancelled"
    wait_until(busy, running=0, waiting=0)


def test_a_request_that_waits_is_cancelled_and_the_others_go_on(busy: RunningDaemon) -> None:
    with open_stream(busy, LONG) as running:
        running.readline()
        with asked(busy, LONG, headers=ID) as waiting:
            wait_until(busy, waiting=1)
            assert cancel(busy).status == 200
            assert waiting.getresponse().status == 499
        so_far = report(busy)["output_tokens"]
        while report(busy)["output_tokens"] < so_far + 100:
            running.readline()
        assert report(busy)["running"] == 1


def test_a_request_whose_model_is_not_loaded_yet_is_cancelled(busy: RunningDaemon) -> None:
    send(busy, "POST", "/llmd/stop", {"model": MODEL})
    with asked(busy, LONG, headers=ID) as connection:
        while cancel(busy).status == 404:
            pass
        assert connection.getresponse().status == 499
    assert complete(busy).status == 200


def test_an_unknown_request_is_not_found(busy: RunningDaemon) -> None:
    reply = cancel(busy, "gone")
    assert (reply.status, reply.error["code"]) == (404, "request_not_found")
    assert "gone" in reply.error["message"]
    assert send(busy, "POST", "/llmd/cancel", {}).status == 400


def test_requests_with_the_same_id_are_cancelled_together(busy: RunningDaemon) -> None:
    with contextlib.ExitStack() as all_of_them:
        both = [all_of_them.enter_context(asked(busy, LONG, headers=ID)) for _ in range(2)]
        wait_until(busy, running=1, waiting=1)
        assert cancel(busy).status == 200
        assert [one.getresponse().status for one in both] == [499, 499]
