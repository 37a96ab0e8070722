from __future__ import annotations

from llmd.server.telemetry import series
from llmd.server.telemetry.series import Series


def test_bounds_rise() -> None:
    bounds = [value for name, value in vars(series).items() if name.endswith("_S") or name == "LENGTHS"]
    assert len(bounds) == 6
    assert all(list(one) == sorted(set(one)) for one in bounds)
    assert series.LENGTHS[:4] == (1, 2, 5, 10)


def test_each_model_counts_for_itself() -> None:
    first, second = Series(), Series()
    first.queue.observe(1.0)
    first.finished["stop"] += 1
    assert (second.queue.count, second.finished) == (0, {})
