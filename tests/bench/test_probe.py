"""The probe is compiled here and measures something of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.probe import PEAKS, WAYS, Probe, build


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    folder: Path = tmp_path_factory.mktemp("probe")
    return Probe(build(folder), 8 << 20, 2)


def test_memory_is_read_in_the_two_best_ways(probe: Probe) -> None:
    assert set(probe.ways()) < set(WAYS)
    assert len(probe.ways()) == 2
    assert probe.read() > 0


def test_integer_rates_are_of_what_the_processor_has(probe: Probe) -> None:
    rates = probe.integers()
    assert set(rates) <= set(PEAKS)
    assert all(rate > 0 for rate in rates.values())
