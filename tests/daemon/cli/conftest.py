"""Commands are run in this process, with folders of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmd.cli.main import run


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it wrote."""

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
    root = logging.getLogger()
    before = (root.level, root.handlers[:])

    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run(arguments)
        return Outcome(code, *capfd.readouterr())

    yield call
    root.setLevel(before[0])
    root.handlers[:] = before[1]
