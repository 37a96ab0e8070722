"""Requests for vectors outlive their engine, and end with their clients."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from llmd.client_connection import connected
from tests.serving.engine_state import report
from tests.serving.http import LIMIT_S, send
from tests.serving.model import write_embedding_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

TEXTS = [f"Text number {number} " * (number % 25 + 1) for number in range(60)]


@pytest.fixture
def daemon(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path, cache=probes)
    write_embedding_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        yield running


def begin(daemon: RunningDaemon) -> http.client.HTTPConnection:
    """Ask for many vectors, and wait for none."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(daemon.tcp)
    connection.sock.settimeout(LIMIT_S)
    connection.request("POST", "/v1/embeddings", json.dumps({"model": MODEL, "input": TEXTS}))
    return connection


def wait_for_steps(daemon: RunningDaemon, count: int) -> None:
    while report(daemon)["steps"] < count:
        pass


def row(daemon: RunningDaemon) -> dict[str, Any]:
    (found,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
    return dict(found)


def test_killed_engine_is_replaced_and_no_vector_is_lost(daemon: RunningDaemon) -> None:
    undisturbed = send(daemon, "POST", "/v1/embeddings", {"model": MODEL, "input": TEXTS}).json
    before = report(daemon)["steps"]
    with closing(begin(daemon)) as connection:
        wait_for_steps(daemon, before + 5)
        os.kill(row(daemon)["engine_pid"], signal.SIGKILL)
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())) == (200, undisturbed)
    assert row(daemon)["restarts"] == 1


def test_texts_of_a_client_that_leaves_are_forgotten(daemon: RunningDaemon) -> None:
    with closing(begin(daemon)):
        wait_for_steps(daemon, 3)
    while (state := report(daemon))["running"] or state["waiting"] or state["kv_blocks_used"]:
        pass
    assert state["prompt_tokens"] < sum(len(text) + 1 for text in TEXTS)


def test_a_small_request_is_answered_before_a_large_one_is_done(daemon: RunningDaemon) -> None:
    with closing(begin(daemon)) as connection:
        wait_for_steps(daemon, 2)
        reply = send(daemon, "POST", "/v1/embeddings", {"model": MODEL, "input": "Hello"})
        assert reply.status == 200
        assert report(daemon)["waiting"] > 0
        assert connection.getresponse().status == 200
