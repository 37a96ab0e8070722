from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from llmd.api.messages import Loading
from llmd.server.dialects.native.load import Step, present_step, steps
from tests.serving.http import send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


def load(daemon: RunningDaemon, **fields: Any) -> list[dict[str, Any]]:
    reply = send(daemon, "POST", "/llmd/load", {"model": MODEL, **fields})
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.content.splitlines()]


def test_a_model_is_loaded_step_by_step_and_stays_as_long_as_it_is_told(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon:
        *progress, result = load(daemon, keep_alive=-1)
        assert {frozenset(step) for step in progress} == {frozenset({"step", "done", "total"})}
        assert (result["step"], result["model"], result["devices"]) == ("loaded", MODEL, ["reference"])
        assert result["size_bytes"] > 0
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        assert (row["status"], row["expires_at"], row["users"]) == ("loaded", None, 0)
        again = load(daemon, keep_alive="10m")
        assert again[-1] == result
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        assert row["expires_at"] is not None


def test_what_cannot_be_loaded_says_why(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    broken = write_model(directories.models / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    with running_daemon(directories, models=()) as daemon:
        reply = send(daemon, "POST", "/llmd/load", {"model": "broken"})
        error = json.loads(reply.content.splitlines()[-1])["error"]
        assert "model.safetensors" in error["message"]
        assert send(daemon, "POST", "/llmd/load", {"model": "absent"}).status == 404
        assert send(daemon, "POST", "/llmd/load", {}).status == 400


class Loader:
    """What a step is read from."""

    def __init__(self) -> None:
        self.leases = self.supervisor = self
        self.waits_for: tuple[str, ...] = ()
        self.progress: Loading | None = None


def test_a_step_says_what_the_model_does_now() -> None:
    model: Any = Loader()
    assert present_step(model) == Step("starting the engine")
    model.progress = Loading("layers 0-3 on cpu", 5, 10)
    assert present_step(model) == Step("layers 0-3 on cpu", 5, 10)
    model.waits_for = ("a", "b")
    assert present_step(model) == Step("waiting for the memory of a, b")


async def test_a_step_is_sent_when_it_changes_and_at_times_when_not(monkeypatch: Any) -> None:
    monkeypatch.setattr("llmd.server.dialects.native.load.LOOK_S", 0.0)
    model: Any = Loader()
    ready: Any = asyncio.Task(asyncio.Event().wait())
    sent = steps(model, ready)
    assert await anext(sent) == await anext(sent) == Step("starting the engine")
    model.progress = Loading("layers 0-3 on cpu", 5, 10)
    assert await anext(sent) == Step("layers 0-3 on cpu", 5, 10)
    ready.cancel()
    await asyncio.wait({ready})
    assert [step async for step in sent] == []
