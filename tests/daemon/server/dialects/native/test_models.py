from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.http import chat, send
from tests.serving.hub import Hub, Repository
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture
def pulling(hub: Hub, tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon that pulls from that hub."""
    hub.repositories["org/name"] = Repository.of(write_model(tmp_path / "original"))
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, hub=hub.url) as running:
        yield running


def test_a_pulled_model_answers(pulling: RunningDaemon) -> None:
    reply = send(pulling, "POST", "/llmd/pull", {"model": "hf.co/org/name"})
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines = [line for line in reply.lines if line]
    assert '"status":"pulling manifest"' in lines[0]
    assert '"model":"org/name"' in lines[-1]
    assert chat(pulling, model="org/name").status == 200
    assert chat(pulling, model="org/name").headers["x-llmd-model"] == "org/name"


def test_models_are_listed_with_their_state_and_source(pulling: RunningDaemon) -> None:
    send(pulling, "POST", "/llmd/pull", {"model": "org/name"})
    body = send(pulling, "GET", "/llmd/models").json
    rows = {row["name"]: row for row in body["models"]}
    assert (rows[MODEL]["state"], rows[MODEL]["source"]) == ("loaded", "")
    assert (rows["org/name"]["state"], rows["org/name"]["source"]) == ("unloaded", "org/name")
    assert body["pulls"] == []


def test_derived_models_are_listed_with_the_state_of_their_base(pulling: RunningDaemon) -> None:
    send(
        pulling, "POST", "/api/create", {"model": "pirate", "from": MODEL, "system": "Arr.", "stream": False}
    )
    rows = {row["name"]: row for row in send(pulling, "GET", "/llmd/models").json["models"]}
    assert (rows["pirate"]["base"], rows["pirate"]["state"]) == (MODEL, "loaded")


def test_models_given_by_path_are_listed_with_their_copies(pulling: RunningDaemon, tmp_path: Path) -> None:
    path = write_model(tmp_path / "elsewhere")

    def states() -> dict[str, tuple[str, str]]:
        rows = send(pulling, "GET", "/llmd/models").json["models"]
        return {row["name"]: (row["state"], row["base"]) for row in rows if row["name"] != MODEL}

    assert send(pulling, "POST", "/llmd/load", {"model": str(path)}, unix=True).status == 200
    copy = {"source": "elsewhere", "destination": "copy"}
    assert send(pulling, "POST", "/api/copy", copy).status == 200
    assert states() == {"elsewhere": ("loaded", ""), "copy": ("loaded", "elsewhere")}
    send(pulling, "POST", "/llmd/stop", {"model": "elsewhere"})
    assert states() == {"elsewhere": ("unloaded", ""), "copy": ("unloaded", "elsewhere")}


def test_an_engine_keeps_its_version_when_the_name_gets_a_new_one(
    pulling: RunningDaemon, hub: Hub, tmp_path: Path
) -> None:
    send(pulling, "POST", "/llmd/pull", {"model": "org/name"})
    old = chat(pulling, model="org/name").json["choices"]
    files = Repository.of(write_model(tmp_path / "changed", seed=9)).commits["1" * 40]
    hub.repositories["org/name"].add("main", "2" * 40, files)
    send(pulling, "POST", "/llmd/pull", {"model": "org/name"})
    assert chat(pulling, model="org/name").json["choices"] == old
    rows = {row["name"]: row for row in send(pulling, "GET", "/llmd/ps").json["models"]}
    os.kill(rows["org/name"]["engine_pid"], signal.SIGKILL)
    assert chat(pulling, model="org/name").json["choices"] == old
    send(pulling, "POST", "/llmd/stop", {"model": "org/name"})
    assert chat(pulling, model="org/name").json["choices"] != old


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_value"),
        ({"model": "../x"}, 400, None),
        ({"model": "http://127.0.0.1/x/y"}, 400, None),
        ({"model": "org/absent"}, 200, "model_not_found"),
    ],
)
def test_what_cannot_be_pulled_is_refused_before_the_first_line_or_in_the_last(
    pulling: RunningDaemon, body: dict[str, str], status: int, code: str | None
) -> None:
    reply = send(pulling, "POST", "/llmd/pull", body)
    error = json.loads(reply.lines[-1])["error"]
    assert (error["code"], reply.status) == (code, status)


def test_a_name_that_is_taken_is_refused_at_once(pulling: RunningDaemon, hub: Hub) -> None:
    (pulling.directories.models / "org").mkdir()
    (pulling.directories.models / "org" / "taken").mkdir()
    assert send(pulling, "POST", "/llmd/pull", {"model": "org/taken"}).status == 409
    assert hub.asked == []


def test_shutting_down_ends_a_pull_at_once(pulling: RunningDaemon, hub: Hub) -> None:
    hub.hold.clear()
    with pulling.client()._reply("POST", "/llmd/pull", {"model": "org/name"}) as reply:
        while b"config.json" not in reply.readline():
            pass
        pulling.shut_down()
        assert b"shutting_down" in reply.read()
    pulling.thread.join(20)
    assert not pulling.thread.is_alive()
