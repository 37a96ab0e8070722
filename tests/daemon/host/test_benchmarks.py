"""Rates are measured once, checked afterwards, and measured again after a drift."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from llmd.api.device import DeviceInfo, DeviceProfile
from llmd.api.errors import PluginError
from llmd.host import benchmarks
from llmd.host.benchmarks import (
    CHECK,
    FULL,
    Benchmarks,
    Measurement,
    benchmark_limit,
    drifted,
    measure_now,
)
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.process.limits import TimeLimit
from tests.plugin_sites import Site

PROFILE = DeviceProfile(100.0, {"f32": 50.0, "q8": 80.0}, {"q8": {16: 1000.0}})
QUICK = Measurement("made_made:profile", 0.1)
DEVICE = """
from pathlib import Path
from llmd.api import Backend, DeviceProfile, hookimpl
LLMD_API = 2
FOLDER = Path(__file__).parents[1]

@hookimpl
def llmd_backends():
    return [Backend("made", list, Device)]

class Device:
    def __init__(self, name, options):
        pass

    def close(self):
        pass

def profile(device, budget_s):
    assert isinstance(device, Device)
    with (FOLDER / "budgets").open("a") as file:
        file.write(f"{budget_s}\\n")
    return DeviceProfile(float((FOLDER / "rate").read_text()), {"f32": 1.0}, {"f32": {512: 2.0}})
"""


@pytest.fixture
def device(site: Site) -> DeviceState:
    plugin = site.write("made", DEVICE)
    info = DeviceInfo("toy", "toy", 1, 1, ("f32",), ("f32",), (), description="a toy")
    return DeviceState(info, "made", plugin, ok=True)


def budgets(tmp_path: Path) -> list[float]:
    return [float(line) for line in (tmp_path / "budgets").read_text().split()]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Measurement]:
    """Record measurements; a check measures rates 1.5 times those of the full measurement."""
    taken: list[Measurement] = []

    def measured(device: DeviceState, how: Measurement) -> DeviceProfile:
        taken.append(how)
        rate = float(device.info.memory_bytes)
        return DeviceProfile(rate if how == FULL else 1.5 * rate, {"f32": 1.0}, {})

    monkeypatch.setattr(benchmarks, "measure_now", measured)
    return taken


def at_rate(device: DeviceState, rate: int) -> DeviceState:
    return msgspec.structs.replace(device, info=msgspec.structs.replace(device.info, memory_bytes=rate))


def test_the_first_measurement_is_a_check_and_the_full_one(
    device: DeviceState, cache: Cache, taken: list[Measurement]
) -> None:
    assert Benchmarks(cache).known(device) is None
    assert Benchmarks(cache).measure(at_rate(device, 100)).read_bytes_per_s == 100
    assert Benchmarks(cache).known(device) == DeviceProfile(100.0, {"f32": 1.0}, {})
    assert taken == [CHECK, FULL]
    assert CHECK.budget_s + FULL.budget_s <= 3.0


def test_later_a_short_check_is_enough(device: DeviceState, cache: Cache, taken: list[Measurement]) -> None:
    Benchmarks(cache).measure(at_rate(device, 100))
    taken.clear()
    assert Benchmarks(cache).measure(at_rate(device, 110)).read_bytes_per_s == 100
    assert taken == [CHECK]


def test_drift_asks_for_the_full_measurement(
    device: DeviceState, cache: Cache, taken: list[Measurement]
) -> None:
    Benchmarks(cache).measure(at_rate(device, 100))
    taken.clear()
    assert Benchmarks(cache).measure(at_rate(device, 50)).read_bytes_per_s == 50
    assert taken == [CHECK, FULL]


def test_a_device_is_measured_in_a_child(device: DeviceState, tmp_path: Path) -> None:
    (tmp_path / "rate").write_text("100")
    assert measure_now(device, QUICK) == DeviceProfile(100.0, {"f32": 1.0}, {"f32": {512: 2.0}})
    assert budgets(tmp_path) == [0.1]


def test_a_device_that_cannot_be_measured_is_an_error(device: DeviceState) -> None:
    with pytest.raises(PluginError, match="FileNotFoundError"):
        measure_now(device, QUICK)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (PROFILE, False),
        (DeviceProfile(114.0, {"f32": 50.0, "q8": 80.0}, {"q8": {16: 1000.0}}), False),
        (DeviceProfile(120.0, {"f32": 50.0, "q8": 80.0}, {"q8": {16: 1000.0}}), True),
        (DeviceProfile(100.0, {"f32": 50.0, "q8": 60.0}, {"q8": {16: 1000.0}}), True),
        (DeviceProfile(100.0, {"f32": 50.0, "q8": 80.0}, {"q8": {16: 700.0}}), True),
        (DeviceProfile(100.0, {"f32": 50.0}, {"q8": {16: 1000.0}}), True),
        (DeviceProfile(100.0, {"f32": 50.0, "q8": 80.0}, {"q8": {128: 1000.0}}), True),
    ],
)
def test_a_rate_drifts_beyond_fifteen_percent(now: DeviceProfile, *, expected: bool) -> None:
    assert drifted(PROFILE, now) is expected


def test_a_benchmark_has_its_budget_and_the_time_to_open_the_device() -> None:
    assert benchmark_limit(3.0) == TimeLimit(33.0, 63.0)
