from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.serving.http import send
from tests.serving.model import write_model
from tests.serving.ndjson import generate
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


def loaded(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in send(daemon, "GET", "/api/ps").json["models"]}


def expiry(daemon: RunningDaemon) -> datetime:
    text = loaded(daemon)[MODEL]["expires_at"]
    return datetime.fromisoformat(f"{text[:26]}+00:00")


@pytest.mark.parametrize(("path", "said"), [("/api/generate", "response"), ("/api/chat", "message")])
def test_request_without_a_prompt_loads_and_unloads(
    tmp_path: Path, probes: Path, path: str, said: str
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon:
        assert loaded(daemon) == {}
        reply = send(daemon, "POST", path, {"model": MODEL, "keep_alive": "10m"}).json
        assert (reply["done"], reply["done_reason"], said in reply) == (True, "load", True)
        assert set(loaded(daemon)) == {MODEL}
        left = expiry(daemon) - datetime.now(UTC)
        assert timedelta(minutes=9) < left < timedelta(minutes=11)
        reply = send(daemon, "POST", path, {"model": MODEL, "keep_alive": 0}).json
        assert (reply["done"], reply["done_reason"]) == (True, "unload")
        assert loaded(daemon) == {}


def test_keep_alive_of_an_answer_replaces_what_held(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon:
        generate(daemon, keep_alive=-1)
        assert expiry(daemon).year == 2318
        generate(daemon, keep_alive=3600)
        assert expiry(daemon) - datetime.now(UTC) < timedelta(hours=2)


def test_model_that_is_not_there_is_not_found(daemon: RunningDaemon) -> None:
    for keep_alive in (None, 0):
        body = {"model": "nobody", "keep_alive": keep_alive}
        assert send(daemon, "POST", "/api/generate", body).status == 404
