"""`llmd stop` unloads a model or stops the daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import DaemonUnreachableError, NotFoundError
from tests.serving.http import open_stream
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

Llmd = Callable[..., Any]


def test_unloads_a_model_then_ends_the_daemon(llmd: Llmd, tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as daemon:
        host = f"unix:{daemon.socket}"
        done = llmd("stop", MODEL, "--host", host)
        assert (done.code, done.out) == (0, "")
        assert daemon.client().ps() == []
        assert llmd("stop", "--daemon", "--host", host).code == 0
        daemon.thread.join()
    assert llmd("ps", "--host", host).code == DaemonUnreachableError.exit_code


def test_what_is_not_loaded_cannot_be_unloaded(asked: Llmd) -> None:
    done = asked("unload", "nobody")
    assert (done.code, done.out) == (NotFoundError.exit_code, "")
    assert "nobody is not loaded" in done.err


@pytest.mark.parametrize("arguments", [[], ["tiny", "--daemon"]])
def test_says_what_to_name_where_it_is_unclear(asked: Llmd, arguments: list[str]) -> None:
    done = asked("stop", *arguments)
    assert done.code == 2
    assert "name a model" in done.err


def test_without_waiting_it_returns_while_requests_run(llmd: Llmd, tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    long = {"max_tokens": 1 << 14, "ignore_eos": True}
    with running_daemon(directories, drain_s=60.0) as daemon, open_stream(daemon, long) as stream:
        stream.readline()
        assert llmd("stop", "--daemon", "--no-wait", "--host", f"unix:{daemon.socket}").code == 0
        while not daemon.client().is_draining():
            pass
        assert stream.readline()
    assert llmd("stop", MODEL, "--no-wait").code == 2
