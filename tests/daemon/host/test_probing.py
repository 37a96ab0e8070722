"""A pass is remembered; whatever else happened is tried again."""

from __future__ import annotations

from pathlib import Path

from llmd.host.cache import Cache
from llmd.host.names import PluginName
from llmd.host.probing import Prober, ProbeReport, Probes, probe_now
from tests.plugin_sites import Site

COUNTING = """
from pathlib import Path
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 1

@hookimpl
def llmd_backends():
    return [Backend("counting", probe, open_device)]

def probe():
    runs = Path(__file__).parents[1] / "runs"
    with runs.open("a") as file:
        file.write("x")
    {outcome}

class Device:
    def close(self):
        pass

def open_device(name):
    return Device()
"""
PASSES = 'return [DeviceInfo("counting", "toy", 1, 1, ("f32",), ("f32",), ())]'
FAILS = 'raise RuntimeError("not today")'


def counting(site: Site, outcome: str) -> PluginName:
    return site.write("counting", COUNTING.format(outcome=outcome))


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


def prober(cache: Cache) -> Prober:
    return Prober(cache, time_limit_s=20.0, trial="")


def test_a_pass_skips_the_child_the_next_time(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    first, second = prober(cache).probe(plugin), prober(cache).probe(plugin)
    assert first == second
    assert [device.info.name for device in second.devices] == ["counting"]
    assert runs(tmp_path) == 1


def test_a_fresh_probe_runs_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    prober(cache).probe(plugin)
    prober(cache).probe(plugin, fresh=True)
    assert runs(tmp_path) == 2


def test_a_failure_is_tried_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, FAILS)
    reports = [prober(cache).probe(plugin) for _ in range(2)]
    assert [report.passed for report in reports] == [False, False]
    assert runs(tmp_path) == 2


def test_a_changed_plugin_is_probed_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    prober(cache).probe(counting(site, PASSES))
    prober(cache).probe(counting(site, PASSES + "  # changed"))
    assert runs(tmp_path) == 2


def test_another_trial_is_another_probe(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    prober(cache).probe(plugin)
    report = Prober(cache, time_limit_s=20.0, trial="no_such_module:try_device").probe(plugin)
    assert not report.passed
    assert report.failure is not None
    assert "no_such_module" in report.failure.reason
    assert runs(tmp_path) == 1


def test_a_crash_is_a_report_with_a_reason(site: Site) -> None:
    (plugin,) = site.install("segfaults")
    report = probe_now(plugin, 20.0, "")
    assert report.failure is not None
    assert report.failure.grain == "probe"
    assert "SIGSEGV (Segmentation fault)" in report.failure.reason
    assert not report.devices


def test_a_device_without_hardware_does_not_spoil_a_pass(site: Site) -> None:
    plugin = counting(site, PASSES.replace('"toy", 1', '"toy", 0'))
    report = probe_now(plugin, 20.0, "")
    assert isinstance(report, ProbeReport)
    assert report.passed
    assert not report.devices[0].ok


def test_a_process_probes_a_plugin_once_unless_asked_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, FAILS)
    probes = Probes(prober(cache), [plugin])
    assert plugin not in probes
    failures = probes.run([plugin])
    assert "not today" in failures[plugin].reason
    assert plugin in probes
    assert probes.run([plugin]) == {}
    assert runs(tmp_path) == 1
    assert set(probes.run([plugin], fresh=True)) == {plugin}
    assert runs(tmp_path) == 2
    probes.clear()
    assert plugin not in probes


def test_devices_are_found_by_name(site: Site, cache: Cache) -> None:
    plugin = counting(site, PASSES)
    probes = Probes(prober(cache), [plugin])
    assert probes.devices() == ()
    probes.run([plugin])
    assert probes.device("counting") == probes.devices()[0]
    assert probes.device("another") is None
