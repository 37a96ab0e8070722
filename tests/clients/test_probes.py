"""What clients that speak Ollama's API ask first, replayed; each goes away where one of these fails."""

from __future__ import annotations

import pytest

from tests.serving.http import send
from tests.serving.probes import OLLAMA_CLI, OPEN_WEBUI, VS_CODE, Sent
from tests.serving.running import MODEL, RunningDaemon


@pytest.mark.parametrize(
    "asked", [OLLAMA_CLI, OPEN_WEBUI, VS_CODE], ids=["ollama's cli", "open webui", "vs code"]
)
def test_first_requests_of_known_clients_are_answered(daemon: RunningDaemon, asked: tuple[Sent, ...]) -> None:
    for method, path, body in asked:
        reply = send(daemon, method, path, body)
        assert reply.status == 200, (path, reply.content)


def test_open_webui_finds_what_its_lists_are_made_of(daemon: RunningDaemon) -> None:
    (entry,) = send(daemon, "GET", "/api/tags").json["models"]
    assert {"details", "digest", "modified_at", "size", "name", "model"} <= set(entry)


def test_vs_code_shows_the_model(daemon: RunningDaemon) -> None:
    version = send(daemon, "GET", "/api/version").json["version"]
    assert all(part.isdigit() for part in version.split("."))
    shown = send(daemon, "POST", "/api/show", {"model": MODEL}).json
    architecture = shown["model_info"]["general.architecture"]
    assert shown["model_info"][f"{architecture}.context_length"] > 0
    assert "tools" in shown["capabilities"]


def test_forms_are_json_too(daemon: RunningDaemon) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b'{"model": "tiny", "prompt": "hi", "stream": false, "options": {"num_predict": 2}}'
    reply = send(daemon, "POST", "/api/generate", body, headers)
    assert (reply.status, reply.json["eval_count"]) == (200, 2)
