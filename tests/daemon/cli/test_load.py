"""`llmd load` loads a model before its first request."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import NotFoundError
from llmd.cli.load import result_line, seconds_or_text, shown, step_line
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

Llmd = Callable[..., Any]
STEPS = [
    {"step": "starting the engine", "done": 0, "total": 0},
    {"step": "layers 0-3 on cpu", "done": 5, "total": 10},
    {"step": "layers 0-3 on cpu", "done": 10, "total": 10},
    {"step": "loaded", "done": 1, "total": 1, "model": "tiny", "devices": ["cpu"]},
]


def test_a_model_is_loaded_and_kept(llmd: Llmd, tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon:
        host = f"unix:{daemon.socket}"
        done = llmd("load", MODEL, "--keep-alive", "-1", "--host", host)
        assert (done.code, done.out) == (0, f"{MODEL} is loaded on reference\n")
        (row,) = daemon.client().ps()
        assert (row["status"], row["expires_at"]) == ("loaded", None)
        last = llmd("load", MODEL, "--json", "--keep-alive", "10m", "--host", host).out.splitlines()[-1]
        assert json.loads(last)["schema"] == 1
        assert json.loads(last)["model"] == MODEL
        refused = llmd("load", "absent", "--host", host)
    assert refused.code == NotFoundError.exit_code
    assert "absent" in refused.err


def test_without_a_terminal_each_step_is_a_line() -> None:
    stream = io.StringIO()
    assert shown(STEPS, stream) == STEPS[-1]
    assert stream.getvalue() == "starting the engine\nlayers 0-3 on cpu\n"
    quiet = io.StringIO()
    assert shown(STEPS, quiet, quiet=True) == STEPS[-1]
    assert quiet.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_changes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    shown(STEPS, stream)
    assert [text.removesuffix("\x1b[K") for text in stream.getvalue().split("\r")[1:]] == [
        "loading: starting the engine",
        "loading 50 %: layers 0-3 on cpu",
        "loading 100 %: layers 0-3 on cpu",
        "",
    ]


def test_lines_name_the_step_and_the_devices() -> None:
    assert step_line(STEPS[0]) == "loading: starting the engine"
    assert result_line({"model": "tiny", "devices": ["cpu", "cuda:0"]}) == "tiny is loaded on cpu and cuda:0"


@pytest.mark.parametrize(("text", "value"), [(None, None), ("-1", -1.0), ("30", 30.0), ("10m", "10m")])
def test_a_number_is_a_number_of_seconds(text: str | None, value: object) -> None:
    assert seconds_or_text(text) == value
