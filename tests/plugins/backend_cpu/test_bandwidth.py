"""Reading is measured over memory that the caches cannot hold, within budget and memory."""

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


def test_reads_as_much_as_is_wanted_and_can_be_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def load_parts(device: object, program: object, source: bandwidth._Source, progress: object) -> object:
        sizes.append(source._weights.nbytes)
        assert np.all(source._weights == 0.5)
        return Parts()

    class Parts:
        def read_factors(self) -> int:
            return 1

    monkeypatch.setattr(bandwidth, "load_parts", load_parts)
    monkeypatch.setattr(bandwidth, "cache_bytes", lambda: 40 * MIB)
    device = _ext.Device("generic", 1, 0)
    assert read_rate(device, 0.0) > 0
    monkeypatch.setattr(bandwidth, "available_bytes", lambda: 1024 * MIB)
    assert read_rate(device, 20.0 / 1000) > 0
    assert sizes[0] == 16 * MIB
    assert sizes[0] <= sizes[1] <= 80 * MIB


def test_measures_real_reads() -> None:
    assert read_rate(_ext.Device(_ext.available_isas()[0], 2, 0), 0.05) > 1e8
