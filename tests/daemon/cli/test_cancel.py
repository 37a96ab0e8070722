"""`llmd cancel` ends requests by their ids, which a shell completes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import NotFoundError
from llmd.cli.cancel import command
from llmd.cli.completion.names import request_ids
from tests.serving.engine_state import asked, wait_until
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

Llmd = Callable[..., Any]
LONG = {"max_tokens": 1 << 14, "ignore_eos": True}


def completed(typed: str) -> list[str]:
    return request_ids(click.Context(command), command.params[0], typed)


def test_a_request_is_cancelled_by_its_id(
    llmd: Llmd, tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories) as busy:
        monkeypatch.setenv("LLMD_HOST", f"unix:{busy.socket}")
        with asked(busy, LONG, headers={"x-request-id": "unwanted"}) as connection:
            wait_until(busy, running=1)
            assert completed("unw") == ["unwanted"]
            assert completed("other") == []
            done = llmd("cancel", "gone", "unwanted")
            assert (done.code, done.out) == (NotFoundError.exit_code, "")
            assert "no request gone runs or waits" in done.err
            assert connection.getresponse().status == 499


def test_ids_are_completed(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_HOST", f"unix:{daemon.socket}")
    assert completed("") == []
    monkeypatch.setenv("LLMD_HOST", f"unix:{daemon.socket}.none")
    assert completed("") == []
