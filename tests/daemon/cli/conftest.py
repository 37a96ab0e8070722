"""Fixtures that run commands in this process, with temporary folders."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmd.cli.main import run
from tests.serving.model import write_model
from tests.serving.probed import seed_cache
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Llmd = Callable[..., Outcome]


@pytest.fixture
def llmd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Llmd]:
    """Runs ``llmd`` with arguments."""
    for folder in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{folder}_HOME", str(tmp_path / folder.lower()))
    seed_cache(tmp_path / "cache" / "llmd")
    root = logging.getLogger()
    before = (root.level, root.handlers[:])

    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run(arguments)
        return Outcome(code, *capfd.readouterr())

    yield call
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with one model, for tests that do not stop it."""
    directories = directories_below(tmp_path_factory.mktemp("daemon"))
    write_model(directories.models / MODEL)
    with running_daemon(directories, aliases={"other": MODEL}) as running:
        yield running


@pytest.fixture
def asked(llmd: Llmd, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> Llmd:
    """``llmd`` with that daemon running and an empty standard input."""
    monkeypatch.setenv("LLMD_HOST", f"unix:{daemon.socket}")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return llmd
