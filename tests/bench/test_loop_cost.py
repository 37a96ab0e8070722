"""The runner of the loop's cost measures what it says; the figures themselves belong to `bench/results`."""

from __future__ import annotations

import pytest

from bench import loop_cost
from llmd.api.messages import SamplingParams


def test_the_device_stands_still_while_the_loop_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_cost, "STEPS", 5)
    monkeypatch.setattr(
        loop_cost, "STEP_MS", 0.001
    )  # shorter than any loop: the device waits between all steps
    assert loop_cost.idle_share(3, SamplingParams(0, 0.8)) > 1


def test_answers_arrive_from_a_daemon_on_the_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_cost, "ROUNDS", 1)
    monkeypatch.setattr(loop_cost, "STEPS", 5)
    monkeypatch.setattr(loop_cost, "ANSWER_LEN", 20)
    measured = loop_cost.measure(2, 0.0, 1.0)
    assert isinstance(measured["arrives"], dict)
    assert 0 < measured["arrives"]["median"] <= 1.1
    assert isinstance(measured["cpu"], dict)
    assert {"front_cpu", "engine_cpu", "client_cpu"} < measured["cpu"].keys()
