"""`GET /llmd/requests` lists what runs and waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving.engine_state import asked, wait_until
from tests.serving.http import open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

LONG = {"max_tokens": 1 << 14, "ignore_eos": True}


def listed(daemon: RunningDaemon) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = send(daemon, "GET", "/llmd/requests").json["requests"]
    return rows


def test_requests_are_listed_oldest_first_with_what_they_wait_for(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories, slots=1) as daemon:
        assert listed(daemon) == []
        with asked(daemon, LONG, headers={"x-request-id": "first"}):
            wait_until(daemon, running=1)
            with asked(daemon, LONG, headers={"x-request-id": "second"}):
                wait_until(daemon, waiting=1)
                first, second = listed(daemon)
    assert (first["request_id"], first["model"], first["waiting_for"]) == ("first", MODEL, None)
    assert (second["request_id"], second["state"], second["waiting_for"]) == ("second", "waiting", "slots")


def test_a_daemon_that_ends_still_lists_its_requests(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories, drain_s=60.0) as daemon, open_stream(daemon, LONG) as stream:
        stream.readline()
        daemon.shut_down()
        while not daemon.client().is_draining():
            pass
        assert [row["model"] for row in listed(daemon)] == [MODEL]
