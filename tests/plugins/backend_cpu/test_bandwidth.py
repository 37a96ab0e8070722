"""The read rate is measured on memory larger than the caches, within the budget."""

from __future__ import annotations

import numpy as np
import pytest

from llmd_backend_cpu import _ext, bandwidth
from llmd_backend_cpu.bandwidth import read_rate, wanted_bytes

MIB = 1 << 20


@pytest.mark.parametrize(
    ("cache", "available", "wanted"),
    [
        (480 * MIB, 16384 * MIB, 960 * MIB),
        (480 * MIB, 1024 * MIB, 256 * MIB),
        (8 * MIB, 16384 * MIB, 64 * MIB),
        (0, 0, 64 * MIB),
    ],
)
def test_reads_twice_the_caches_of_a_quarter_of_free_memory(cache: int, available: int, wanted: int) -> None:
    assert wanted_bytes(cache, available) == wanted


class Clock:
    """Replaces the module ``time``: each reading of the clock takes ``tick_s``."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.now_s = 0.0
        self._tick_s = tick_s

    def perf_counter(self) -> float:
        self.now_s += self._tick_s
        return self.now_s


class LoadedWeights:
    """Weights whose reads take 1, 2, 4 … seconds for 800 bytes."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._took_s = clock, 1.0

    def read_factors(self) -> int:
        self._clock.now_s += self._took_s
        self._took_s *= 2
        return 800


def sizes_and_rate(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, budget_s: float, *, available: int = 1024 * MIB
) -> tuple[int, float]:
    """Return the bytes to be read and the measured rate."""
    sizes: list[int] = []

    def load_weights(device: object, program: object, source: bandwidth._Source, progress: object) -> object:
        sizes.append(source._weights.nbytes)
        assert np.all(source._weights == 0.5)
        return LoadedWeights(clock)

    with monkeypatch.context() as patch:
        patch.setattr(bandwidth, "load_weights", load_weights)
        patch.setattr(bandwidth, "cache_bytes", lambda: 40 * MIB)
        patch.setattr(bandwidth, "available_bytes", lambda: available)
        patch.setattr(bandwidth, "time", clock)
        rate = read_rate(_ext.Device("generic", 1, 0), budget_s)
    (size,) = sizes
    return size, rate


def test_the_rate_is_the_median_of_the_reads_that_the_budget_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes_and_rate(monkeypatch, Clock(), 0.0) == (16 * MIB, 800.0)
    assert sizes_and_rate(monkeypatch, Clock(), 1.0) == (80 * MIB, 800.0)
    assert sizes_and_rate(monkeypatch, Clock(), 2.5) == (80 * MIB, (800.0 + 400.0) / 2)
    assert sizes_and_rate(monkeypatch, Clock(), 7.0) == (80 * MIB, 400.0)
    assert sizes_and_rate(monkeypatch, Clock(), 14.0)[1] == (400.0 + 200.0) / 2


def test_two_thirds_of_the_budget_go_into_filling_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    # A piece has 16 MiB; each reading of the clock, one before each piece except the first, takes a second.
    assert sizes_and_rate(monkeypatch, Clock(1.0), 0.0)[0] == 16 * MIB
    assert sizes_and_rate(monkeypatch, Clock(1.0), 3.0)[0] == 32 * MIB
    assert sizes_and_rate(monkeypatch, Clock(1.0), 6.0)[0] == 64 * MIB
    assert sizes_and_rate(monkeypatch, Clock(1.0), 60.0)[0] == 80 * MIB


def test_measures_real_reads() -> None:
    assert read_rate(_ext.Device(_ext.available_isas()[0], 2, 0), 0.05) > 1e8
