"""Rates are measured once, checked afterwards, and measured anew when they drifted."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.device import DeviceInfo, DeviceProfile
from llmd.api.errors import PluginError
from llmd.host.benchmarks import CHECK_BUDGET_S, FULL_BUDGET_S, Benchmarks, drifted, measure_now
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from tests.plugin_sites import Site

PROFILE = DeviceProfile(100.0, {"f32": 50.0, "q8": 80.0}, 1000.0)
DEVICE = """
from pathlib import Path
from llmd.api import Backend, DeviceProfile, hookimpl
LLMD_API = 1
FOLDER = Path(__file__).parents[1]

@hookimpl
def llmd_backends():
    return [Backend("made", list, Device)]

class Device:
    def __init__(self, name):
        pass

    def benchmark(self, budget_s):
        with (FOLDER / "budgets").open("a") as file:
            file.write(f"{budget_s}\\n")
        return DeviceProfile(float((FOLDER / "rate").read_text()), {"f32": 1.0}, 1.0)

    def close(self):
        pass
"""


@pytest.fixture
def device(site: Site) -> DeviceState:
    plugin = site.write("made", DEVICE)
    info = DeviceInfo("toy", "toy", 1, 1, ("f32",), ("f32",), (), description="a toy")
    return DeviceState(info, "made", plugin, ok=True)


def budgets(tmp_path: Path) -> list[float]:
    return [float(line) for line in (tmp_path / "budgets").read_text().split()]


def test_the_first_measurement_is_the_full_one(device: DeviceState, cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "rate").write_text("100")
    benchmarks = Benchmarks(cache)
    assert benchmarks.known(device) is None
    assert benchmarks.measure(device).read_bytes_per_s == 100
    assert benchmarks.known(device) == DeviceProfile(100.0, {"f32": 1.0}, 1.0)
    assert budgets(tmp_path) == [FULL_BUDGET_S]


def test_later_a_short_check_is_enough(device: DeviceState, cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "rate").write_text("100")
    Benchmarks(cache).measure(device)
    (tmp_path / "rate").write_text("110")
    assert Benchmarks(cache).measure(device).read_bytes_per_s == 100
    assert budgets(tmp_path) == [FULL_BUDGET_S, CHECK_BUDGET_S]


def test_drift_asks_for_the_full_measurement(device: DeviceState, cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "rate").write_text("100")
    Benchmarks(cache).measure(device)
    (tmp_path / "rate").write_text("50")
    assert Benchmarks(cache).measure(device).read_bytes_per_s == 50
    assert budgets(tmp_path) == [FULL_BUDGET_S, CHECK_BUDGET_S, FULL_BUDGET_S]


def test_a_device_that_cannot_be_measured_is_an_error(device: DeviceState) -> None:
    with pytest.raises(PluginError, match="FileNotFoundError"):
        measure_now(device, 0.1)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (PROFILE, False),
        (DeviceProfile(114.0, {"f32": 50.0, "q8": 80.0}, 1000.0), False),
        (DeviceProfile(120.0, {"f32": 50.0, "q8": 80.0}, 1000.0), True),
        (DeviceProfile(100.0, {"f32": 50.0, "q8": 60.0}, 1000.0), True),
        (DeviceProfile(100.0, {"f32": 50.0, "q8": 80.0}, 700.0), True),
        (DeviceProfile(100.0, {"f32": 50.0}, 1000.0), True),
    ],
)
def test_a_rate_drifts_beyond_fifteen_percent(now: DeviceProfile, *, expected: bool) -> None:
    assert drifted(PROFILE, now) is expected
