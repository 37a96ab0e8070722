"""The benchmark measures what it says; its results belong in `bench/results`."""

from __future__ import annotations

import pytest

from bench import loop_cost


def test_answers_arrive_from_a_daemon_on_the_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_cost, "ROUNDS", 1)
    monkeypatch.setattr(loop_cost, "STEPS", 5)
    monkeypatch.setattr(loop_cost, "ANSWER_LEN", 20)
    measured = loop_cost.measure(2, 0.0, 1.0)
    assert isinstance(measured["arrives"], dict)
    # No upper bound: if this process reads the first byte late, more seems to arrive than is generated.
    assert measured["arrives"]["median"] > 0
    assert isinstance(measured["cpu"], dict)
    assert {"front_cpu", "engine_cpu", "client_cpu"} < measured["cpu"].keys()
