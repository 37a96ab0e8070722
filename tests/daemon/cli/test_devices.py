"""`llmd devices` shows speeds, and why a device is not used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from llmd.api.machine import total_bytes
from llmd.cli.devices import DeviceRow, described_state, in_giga, memory, prefill, row_of
from llmd.host import benchmarks
from llmd.host.benchmarks import Benchmarks, Measurement
from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

TOY = """
from llmd.api import Backend, DeviceInfo, DeviceProfile, hookimpl
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend("toys", probe, Device)]

def probe():
    return [
        DeviceInfo("toy:0", "toy", 1, 4 << 30, ("f32",), ("f32",), (), description="a toy"),
        DeviceInfo("toy:1", "toy", 0, 0, (), (), (), reason="its driver is too old", memory_id="card"),
    ]

class Device:
    def __init__(self, name, options):
        pass

    def close(self):
        pass

def profile(device, budget_s):
    {profile}
"""
RATES = 'return DeviceProfile(25e9, {"f32": 20e9, "q8": 12e9}, {"f32": {16: 90e9, 512: 150e9}})'
ROW = DeviceRow("cpu", "cpu", "", 2 << 30, 1 << 30, 25e9, {}, 150e9, "cpu", "ok", "", "", 4 << 30)


@pytest.fixture
def toys_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECK", "FULL"):
        monkeypatch.setattr(benchmarks, name, Measurement("made_toys:profile", 0.1))


def rows(site: Site, cache: Cache, profile: str) -> list[DeviceRow]:
    plugin = site.write("toys", TOY.format(profile=profile))
    return [row_of(device, Benchmarks(cache)) for device in PluginHost([plugin], cache).devices()]


@pytest.mark.usefixtures("toys_are_measured")
def test_a_usable_device_is_measured_and_an_unusable_one_says_why(
    site: Site, cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = rows(site, cache, RATES)
    assert (first.state, first.read_bytes_per_s, first.prefill_flops_per_s) == ("ok", 25e9, 150e9)
    assert first.decode_bytes_per_s == {"f32": 20e9, "q8": 12e9}
    assert first.free_bytes
    assert (first.total_bytes, second.total_bytes) == (total_bytes(), 0)
    assert second.free_bytes is None, "only main memory is counted here"
    assert (second.state, second.read_bytes_per_s, second.reason) == ("unused", None, "its driver is too old")
    assert capsys.readouterr() == ("", "measuring toy:0 …\n")


@pytest.mark.usefixtures("toys_are_measured")
def test_a_stored_profile_is_not_measured_again(
    site: Site, cache: Cache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd.cli.devices.available_bytes", lambda: 1 << 30)
    plugin = site.write("toys", TOY.format(profile=RATES))
    device = PluginHost([plugin], cache).choose_device("toy:0")
    before = row_of(device, Benchmarks(cache))
    capsys.readouterr()
    assert row_of(device, Benchmarks(cache)) == before
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("toys_are_measured")
def test_a_device_that_cannot_be_measured_stays_in_the_list(site: Site, cache: Cache) -> None:
    first, _ = rows(site, cache, 'raise OSError("its fan is stuck")')
    assert (first.state, first.read_bytes_per_s) == ("ok", None)
    assert "its fan is stuck" in first.reason


def test_a_backend_whose_probe_failed_stays_in_the_list_with_its_reason(llmd: Llmd, site: Site) -> None:
    site.install("segfaults", "raises_on_import")
    devices = {device["name"]: device for device in json.loads(llmd("devices", "--json").out)["devices"]}
    failed = devices["segfaults"]
    assert (failed["state"], failed["plugin"], failed["memory_bytes"]) == ("failed", "segfaults", None)
    assert "SIGSEGV" in failed["reason"]
    assert failed["fix"] == failed["mend"] != ""
    assert "built for another driver" in devices["raises"]["reason"]
    shown = llmd("devices", "--sort", "FREE/TOTAL").out
    assert "failed: it crashed with SIGSEGV" in next(
        line for line in shown.splitlines() if line.startswith("segfaults")
    )


def test_the_reference_is_always_there(llmd: Llmd) -> None:
    done = llmd("devices", "--json")
    assert done.code == 0
    devices = {device["name"]: device for device in json.loads(done.out)["devices"]}
    assert devices["reference"]["state"] == "ok"
    assert devices["reference"]["read_bytes_per_s"] > 0
    assert devices["reference"]["memory_bytes"] > 0
    line = next(
        line for line in llmd("devices", "--plain").out.splitlines() if line.startswith("reference\t")
    )
    assert line.split("\t")[-2:] == ["reference", "ok"]


def test_cells_are_readable() -> None:
    assert memory(ROW) == "1.0 GiB / 4.0 GiB"
    assert (in_giga(25.04e9), in_giga(None)) == ("25.0", "")
    assert prefill(ROW) == "150.0 GFLOP/s"
    assert described_state(ROW) == "ok"
