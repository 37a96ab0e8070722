"""The probe compiles on this machine and measures plausible rates."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from bench.probe import WAYS, Probe, build

FLAGS = {"AVX2": "avx2", "VNNI": "avx512_vnni", "AMX": "amx_int8"}
PLAUSIBLE_READS = (1e8, 1e13)
PLAUSIBLE_OPERATIONS = (1e9, 1e16)
"""Per second, from the slowest machine to ten times the fastest: a wrong unit is outside this range."""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    folder: Path = tmp_path_factory.mktemp("probe")
    return Probe(build(folder), 8 << 20, 2)


class Rates:
    """A fake library of loops with known rates: each call of a loop is slower than the one before."""

    def __init__(self) -> None:
        self.calls = 0
        self.probe_memory = _Function(lambda _bytes: 1)
        self.probe_read = _Function(self._read)
        self._integers = {"probe_avx2": 5e9, "probe_vnni": 0.0, "probe_amx": 7e9}

    def __getitem__(self, symbol: str) -> _Function:
        return _Function(lambda _threads: self._slower(self._integers[symbol]))

    def _read(self, _memory: object, size: ctypes.c_size_t, threads: int, ahead: int, streams: int) -> float:
        assert (size.value, threads) == (8 << 20, 2)
        return self._slower(1e9 * streams + ahead)

    def _slower(self, rate: float) -> float:
        self.calls += 1
        return rate - self.calls if rate else 0.0


class _Function:
    """Replaces a function of a `ctypes` library."""

    def __init__(self, call: Callable[..., float]) -> None:
        self._call = call
        self.restype: object = None

    def __call__(self, *arguments: Any) -> float:
        return self._call(*arguments)


def test_the_best_of_the_two_best_ways_is_taken() -> None:
    library = Rates()
    probe = Probe(cast("ctypes.CDLL", library), 8 << 20, 2)
    assert probe.ways() == [(2048, 4), (4096, 4)]
    library.calls = 0
    assert probe.read() == 4e9 + 4096 - 2
    library.calls = 0
    assert probe.integers() == {"AVX2": 5e9 - 1, "AMX": 7e9 - 7}


def test_memory_is_read_in_the_two_best_ways(probe: Probe) -> None:
    assert set(probe.ways()) < set(WAYS)
    assert len(probe.ways()) == 2
    assert PLAUSIBLE_READS[0] < probe.read() < PLAUSIBLE_READS[1]


def test_integer_rates_are_of_what_the_processor_has(probe: Probe) -> None:
    rates = probe.integers()
    flags = Path("/proc/cpuinfo").read_text().split()
    known = {name for name, flag in FLAGS.items() if flag in flags}
    assert known - {"AMX"} <= set(rates) <= known  # the system may deny AMX tiles to a process
    assert all(PLAUSIBLE_OPERATIONS[0] < rate < PLAUSIBLE_OPERATIONS[1] for rate in rates.values())
