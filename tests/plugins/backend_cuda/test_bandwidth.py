"""The bandwidth of a card, measured on little memory."""

from __future__ import annotations

import pytest

from llmd_backend_cuda import bandwidth
from llmd_backend_cuda.bandwidth import read_rate, runs_per_s
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, open_device

pytestmark = NEEDS_COMPILER


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_READ_BYTES", 1 << 16)


def test_memory_is_read_and_freed() -> None:
    card = SimulatedCard()
    assert open_device(card).read_rate(0.01) > 0
    assert "read_memory" in card.launched
    assert card.used_bytes == 0


def test_a_card_with_little_free_memory_reads_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_READ_BYTES", 1 << 40)
    assert read_rate(SimulatedCard(memory_bytes=1 << 20), 0.0) > 0


class Clock:
    """A clock that goes on by 0.25 s with each run."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.runs = 0

    def perf_counter(self) -> float:
        return self.now_s

    def run(self) -> None:
        self.now_s += 0.25
        self.runs += 1


@pytest.mark.parametrize(("budget_s", "runs"), [(0.0, 11), (2.0, 11), (2.6, 21)])
def test_the_first_run_does_not_count_and_the_budget_is_kept(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, runs: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(bandwidth, "time", clock)
    assert runs_per_s(SimulatedCard(), clock.run, budget_s) == pytest.approx(4.0)
    assert clock.runs == runs


def test_a_clock_that_stands_still_is_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(bandwidth, "time", clock)
    assert runs_per_s(SimulatedCard(), lambda: None, 0.0) == 0.0
