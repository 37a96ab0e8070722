"""Two models, and memory for one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.config import EngineConfig
from llmd.engine.composition import make_host
from llmd.server.models.load_message import load_message
from tests.serving.http import chat, open_stream
from tests.serving.memory_needs import memory_needs
from tests.serving.model import write_model
from tests.serving.running import RunningDaemon, directories_below, running_daemon

LIMIT_S = 20.0


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probes")


@pytest.fixture
def daemon(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path, cache=probes)
    for name in ("one", "two"):
        write_model(directories.models / name)
    write_model(directories.models / "long", context_len=100_000)
    with running_daemon(
        directories,
        models=(),
        kv_memory=None,
        max_memory=room_for_one(directories.models / "one", probes),
    ) as running:
        yield running


def room_for_one(directory: Path, probes: Path) -> int:
    """Memory that one model fits in, and neither two nor one with more keys and values do."""
    host = make_host(probes)
    load = load_message(directory, EngineConfig(device="reference", kv_dtype="f32"))
    (need,) = memory_needs(load, host).values()
    return need.total_bytes + need.kv_bytes // 2


def loaded(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in daemon.client().ps()}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_idle_one_goes_for_the_other_and_both_answer_as_ever(daemon: RunningDaemon) -> None:
    answers = [chat(daemon, model=name).json["choices"] for name in ("one", "two", "one", "two")]
    assert answers[:2] == answers[2:]
    assert set(loaded(daemon)) == {"two"}


def test_one_that_answers_stays_until_it_has_answered(daemon: RunningDaemon) -> None:
    with open_stream(daemon, {"model": "one", "max_tokens": 400, "ignore_eos": True}) as stream:
        stream.readline()
        with open_stream(daemon, {"model": "two", "max_tokens": 2}) as waiting:
            rest = stream.read()
            assert b"[DONE]" in rest
            assert b"[DONE]" in waiting.read()
    assert set(loaded(daemon)) == {"two"}


def test_one_that_can_never_fit_is_refused_with_the_arithmetic(daemon: RunningDaemon) -> None:
    chat(daemon, model="one")
    reply = chat(daemon, model="long")
    assert (reply.status, reply.error["code"]) == (503, "out_of_memory")
    assert "of weights" in reply.error["message"]
    assert set(loaded(daemon)) >= {"one"}


def test_a_request_says_how_long_its_model_stays(daemon: RunningDaemon) -> None:
    chat(daemon, model="one")
    assert loaded(daemon)["one"]["expires_at"] is not None
    chat(daemon, model="one", keep_alive=-1)
    assert loaded(daemon)["one"]["expires_at"] is None
    chat(daemon, model="one", keep_alive=0)
    until(lambda: not loaded(daemon))
    reply = chat(daemon, model="one", keep_alive="soon")
    assert (reply.status, reply.error["param"]) == (400, "keep_alive")
