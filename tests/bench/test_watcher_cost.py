"""The benchmark measures what it says; its results belong in `bench/results`."""

from __future__ import annotations

import json

import pytest

from bench import loop_cost, watcher_cost


@pytest.mark.exhaustive
def test_both_processes_are_measured_alone_and_watched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watcher_cost, "ROUNDS", 1)
    monkeypatch.setattr(watcher_cost, "STREAMS", 2)
    monkeypatch.setattr(loop_cost, "ANSWER_LEN", 20)
    watcher_cost.main()
    measured = json.loads(capsys.readouterr().out)
    assert [sorted(row) for rows in measured["rounds"].values() for row in rows] == [["engine", "front"]] * 2
    assert measured["ms_per_step"]["alone"]["engine"] > 0
