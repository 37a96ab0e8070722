from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving.http import chat, send
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
