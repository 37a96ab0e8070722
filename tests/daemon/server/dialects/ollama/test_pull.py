from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import ollama
import pytest

from tests.serving.http import open_stream, send
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


def test_pulls_with_progress_or_with_its_last_line_alone(pulling: RunningDaemon) -> None:
    reply = send(pulling, "POST", "/api/pull", {"name": "hf.co/org/name:latest", "insecure": True})
    lines = [json.loads(line) for line in reply.lines]
    assert (lines[0], lines[-1]) == ({"status": "pulling manifest"}, {"status": "success"})
    (weights,) = {line["digest"] for line in lines if line.get("total", 0) > 100_000}
    counts = [line["completed"] for line in lines if line.get("digest") == weights]
    assert counts == sorted(counts)
    again = send(pulling, "POST", "/api/pull", {"model": "org/name", "stream": False})
    assert again.json == {"status": "success"}


def test_official_client_pulls_and_deletes(pulling: RunningDaemon) -> None:
    with ollama.Client(pulling.url) as client:
        steps = list(client.pull("org/name", stream=True))
        assert steps[-1].status == "success"
        assert any(step.total and step.completed == step.total for step in steps)
        assert client.generate("org/name", "Hi", options={"num_predict": 2}).done
        assert "org/name" in {model.model for model in client.list().models}
        assert client.delete("org/name").status == "success"
        assert "org/name" not in {model.model for model in client.list().models}
        with pytest.raises(ollama.ResponseError, match="has no model org/absent"):
            client.pull("org/absent")


def test_a_pulled_model_that_answers_is_not_deleted(pulling: RunningDaemon) -> None:
    send(pulling, "POST", "/api/pull", {"model": "org/name"})
    with open_stream(pulling, {"model": "org/name", "max_tokens": 400, "ignore_eos": True}) as stream:
        stream.readline()
        refused = send(pulling, "DELETE", "/api/delete", {"model": "org/name"})
        assert refused.status == 409
        assert b"[DONE]" in stream.read()
    assert send(pulling, "DELETE", "/api/delete", {"model": "org/name"}).status == 200


@pytest.mark.parametrize("name", ["../x", "http://127.0.0.1:1/x", "registry.example/org/name"])
def test_no_client_says_which_host_is_asked(pulling: RunningDaemon, hub: Hub, name: str) -> None:
    assert send(pulling, "POST", "/api/pull", {"model": name}).status == 400
    assert hub.asked == []


def test_a_users_own_directory_is_neither_replaced_nor_deleted(pulling: RunningDaemon) -> None:
    assert send(pulling, "POST", "/api/pull", {"model": MODEL}).status == 409
    assert send(pulling, "DELETE", "/api/delete", {"model": MODEL}).status == 400


def test_copy_of_a_pulled_model_outlives_it(pulling: RunningDaemon) -> None:
    send(pulling, "POST", "/api/pull", {"model": "org/name", "stream": False})
    assert send(pulling, "POST", "/api/copy", {"source": "org/name", "destination": "mine"}).status == 200
    assert send(pulling, "DELETE", "/api/delete", {"model": "org/name"}).status == 200
    body = {"model": "mine", "prompt": "Hi", "stream": False, "options": {"num_predict": 2}}
    assert send(pulling, "POST", "/api/generate", body).json["eval_count"] == 2
    assert send(pulling, "DELETE", "/api/delete", {"model": "mine"}).status == 200
