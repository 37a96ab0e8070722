from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmd.chat.answers.answer_formats import ParserChoice
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.mark.parametrize("path", ["/health", "/healthz", "/v1/health"])
def test_process_is_alive(daemon: RunningDaemon, path: str) -> None:
    assert send(daemon, "GET", path).json == {"status": "ok"}


@pytest.mark.parametrize("path", ["/ready", "/readyz"])
def test_readiness_lists_the_models_that_can_answer(daemon: RunningDaemon, path: str) -> None:
    reply = send(daemon, "GET", path)
    assert (reply.status, reply.json["status"]) == (200, "ready")
    assert MODEL in reply.json["models"]


def test_version_is_told(daemon: RunningDaemon) -> None:
    assert send(daemon, "GET", "/version").json == {"name": "llmd", "version": daemon.serving.version}


def test_daemon_without_a_model_is_ready(tmp_path: Path, probes: Path) -> None:
    with running_daemon(directories_below(tmp_path, cache=probes), models=()) as daemon:
        reply = send(daemon, "GET", "/ready")
        assert (reply.status, reply.json["models"]) == (200, [])
        assert chat(daemon, model=None).status == 400


def test_daemon_stays_ready_while_another_model_loads(
    tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    write_model(directories.models / "other")
    held, release = threading.Event(), threading.Event()

    def holding_load(
        directory: Path, renderer: TemplateRenderer, parsers: ParserChoice, checker: GrammarChecker
    ) -> ModelText:
        if directory.name == "other":
            held.set()
            release.wait()
        return load_model_text(directory, renderer, parsers, checker)

    monkeypatch.setattr("llmd.server.models.model_loading.load_model_text", holding_load)
    with running_daemon(directories) as daemon, ThreadPoolExecutor(1) as asking:
        waiting = asking.submit(chat, daemon, model="other")
        held.wait()
        reply = send(daemon, "GET", "/ready")
        assert (reply.status, reply.json["models"], reply.json["loading"]) == (200, [MODEL], ["other"])
        release.set()
        assert waiting.result().status == 200
