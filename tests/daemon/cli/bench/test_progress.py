"""Progress is drawn rarely: in place on a terminal, as lines elsewhere."""

from __future__ import annotations

import sys

import pytest

from llmd.benchmark.timeline import Outcome
from llmd.cli.bench.progress import CLEAR, Progress

DONE, FAILED = Outcome(1, 0.0), Outcome(1, 0.0, error="x")


def test_a_pipe_gets_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 9.0, 10.0, 15.0, 21.0])
    progress = Progress(8, lambda: next(times))
    for outcome in (DONE, FAILED, DONE, DONE, DONE):
        progress.ended(outcome)
    progress.close()
    assert capsys.readouterr().err == "3/8 requests, 1 failed\n5/8 requests, 1 failed\n"


def test_a_terminal_gets_one_line_in_place_that_goes_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    times = iter([0.0, 0.1, 0.3, 0.4, 0.6])
    progress = Progress(8, lambda: next(times))
    for _ in range(4):
        progress.ended(DONE)
    progress.close()
    assert capsys.readouterr().err == f"{CLEAR}2/8 requests{CLEAR}4/8 requests{CLEAR}"
