from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.serving.http import chat, send
from tests.serving.model import CONTEXT_LEN, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


def test_ps_tells_where_a_model_lies_and_what_it_does(daemon: RunningDaemon) -> None:
    row = next(row for row in send(daemon, "GET", "/llmd/ps").json["models"] if row["name"] == MODEL)
    assert row["aliases"] == ["gpt-4o"]
    assert (row["status"], row["error"], row["context_len"]) == ("loaded", None, CONTEXT_LEN)
    assert row["loaded"]["stages"][0]["device"] == "reference"
    assert row["report"]["running"] == 0
    os.kill(row["engine_pid"], 0)


def test_the_daemon_names_its_process_and_its_log(daemon: RunningDaemon) -> None:
    known = daemon.client().daemon()
    assert known["pid"] == os.getpid()
    assert known["log"] == {"kind": "other", "path": "", "unit": "", "is_user_unit": False}
    assert known["version"] == daemon.serving.version


def test_plugins_are_listed_with_their_states(daemon: RunningDaemon) -> None:
    plugins = send(daemon, "GET", "/llmd/plugins").json["plugins"]
    assert {"openai", "native", "reference"} <= {row["name"] for row in plugins if row["state"] == "ok"}


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"daemon": False}])
def test_stopping_nothing_is_refused(daemon: RunningDaemon, body: dict[str, object]) -> None:
    assert send(daemon, "POST", "/llmd/stop", body).status == 400


def test_stopped_model_is_gone_until_it_is_asked_for_again(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as daemon:
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        assert send(daemon, "POST", "/llmd/stop", {"model": MODEL}).status == 200
        with pytest.raises(ProcessLookupError):
            os.kill(row["engine_pid"], 0)
        assert send(daemon, "GET", "/llmd/ps").json["models"] == []
        assert send(daemon, "POST", "/llmd/stop", {"model": MODEL}).status == 404
        assert chat(daemon).status == 200


def test_models_of_the_command_line_stay_for_ever_unless_the_flag_says_how_long(
    tmp_path: Path, probes: Path
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as daemon:
        assert chat(daemon).status == 200
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        assert (row["pinned"], row["expires_at"], row["users"]) == (True, None, 0)
        assert row["size_bytes"] == sum(
            s["weight_bytes"] + s["kv_bytes"] + s["step_bytes"] for s in row["loaded"]["stages"]
        )
    with running_daemon(directories, keep_alive="10m") as daemon:
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        left = datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC)
        assert 0 < left.total_seconds() <= 601
        assert not row["pinned"]


def test_stopped_daemon_ends(tmp_path: Path, probes: Path) -> None:
    with running_daemon(directories_below(tmp_path, cache=probes), models=()) as daemon:
        assert send(daemon, "POST", "/llmd/stop", {"daemon": True}).json["stopping"]
        daemon.thread.join()
