"""A pass is stored until something changes; any other result for an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import DeviceInfo
from llmd.host import probing
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.isolation import BusyMachineError, OverrunError
from llmd.host.names import PluginName
from llmd.host.probing import BELIEVED_S, OVERRUN_BELIEVED_S, Prober, ProbeReport, Probes, Trust, probe_now
from llmd.host.states import Failure, Summary
from tests.plugin_sites import Site

COUNTING = """
from pathlib import Path
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 2

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

def open_device(name, options):
    return Device()
"""
PASSES = 'return [DeviceInfo("counting", "toy", 1, 1, ("f32",), ("f32",), ())]'
UNUSABLE = DeviceInfo("counting", "toy", 0, 1, ("f32",), ("f32",), (), reason="it is unplugged")
FAILS = 'raise RuntimeError("not today")'


def counting(site: Site, outcome: str) -> PluginName:
    return site.write("counting", COUNTING.format(outcome=outcome))


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


def prober(cache: Cache, now: float = 1e9) -> Prober:
    return Prober(cache, trial="", clock=lambda: now)


def test_a_pass_skips_the_child_the_next_time(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    first, second = prober(cache).probe(plugin), prober(cache).probe(plugin)
    assert first == second
    assert [device.info.name for device in second.devices] == ["counting"]
    assert runs(tmp_path) == 1


def test_a_fresh_probe_runs_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    prober(cache).probe(plugin)
    prober(cache).probe(plugin, "nothing")
    assert runs(tmp_path) == 2


@pytest.mark.parametrize("found", [Failure("probe", "it hung", "wake it"), (), (UNUSABLE,)])
@pytest.mark.parametrize(
    ("later_s", "trust", "probed"),
    [(BELIEVED_S - 1, "all", 1), (BELIEVED_S, "all", 2), (-1, "all", 2), (1, "passes", 2), (1, "nothing", 2)],
)
def test_what_found_nothing_to_use_is_believed_for_an_hour_unless_it_is_asked_for(
    site: Site,
    cache: Cache,
    monkeypatch: pytest.MonkeyPatch,
    found: Failure | tuple[DeviceInfo, ...],
    later_s: float,
    trust: Trust,
    probed: int,
) -> None:
    plugin = counting(site, PASSES)
    failure, infos = (found, ()) if isinstance(found, Failure) else (None, found)
    devices = tuple(DeviceState(info, "counting", plugin, ok=False) for info in infos)
    asked: list[PluginName] = []

    def probe_now(asked_for: PluginName, *_: object) -> ProbeReport:
        asked.append(asked_for)
        return ProbeReport(Summary(), devices, failure)

    monkeypatch.setattr(probing, "probe_now", probe_now)
    first, second = prober(cache).probe(plugin), prober(cache, 1e9 + later_s).probe(plugin, trust)
    assert (second.failure, second.devices) == (first.failure, first.devices) == (failure, devices)
    assert len(asked) == probed


@pytest.mark.parametrize(("later_s", "probed"), [(OVERRUN_BELIEVED_S - 1, False), (OVERRUN_BELIEVED_S, True)])
def test_a_probe_that_reached_a_time_limit_is_repeated_earlier_than_one_that_crashed(
    site: Site, cache: Cache, monkeypatch: pytest.MonkeyPatch, later_s: float, *, probed: bool
) -> None:
    assert OVERRUN_BELIEVED_S < BELIEVED_S
    plugin = counting(site, PASSES)

    def compiling(*_: object) -> None:
        raise OverrunError("it did not finish", hint="try again")

    with monkeypatch.context() as patched:
        patched.setattr(probing, "run_isolated", compiling)
        assert prober(cache).probe(plugin).failure == Failure("probe", "it did not finish", "try again")
    assert prober(cache, 1e9 + later_s).probe(plugin).passed == probed


def test_what_only_says_that_the_machine_was_busy_is_not_kept(
    site: Site, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = counting(site, PASSES)

    def busy(*_: object) -> None:
        raise BusyMachineError("it did not finish", hint="run it again")

    with monkeypatch.context() as patched:
        patched.setattr(probing, "run_isolated", busy)
        assert prober(cache).probe(plugin).failure == Failure("probe", "it did not finish", "run it again")
    assert prober(cache).probe(plugin).passed


def test_a_changed_plugin_is_probed_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    prober(cache).probe(counting(site, PASSES))
    prober(cache).probe(counting(site, PASSES + "  # changed"))
    assert runs(tmp_path) == 2


def test_another_trial_is_another_probe(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, PASSES)
    prober(cache).probe(plugin)
    report = Prober(cache, trial="no_such_module:try_device").probe(plugin)
    assert not report.passed
    assert report.failure is not None
    assert "no_such_module" in report.failure.reason
    assert runs(tmp_path) == 1


def test_a_crash_is_a_report_with_a_reason(site: Site) -> None:
    (plugin,) = site.install("segfaults")
    report = probe_now(plugin, "")
    assert report.failure is not None
    assert report.failure.phase == "probe"
    assert "SIGSEGV (Segmentation fault)" in report.failure.reason
    assert not report.devices


def test_a_device_that_says_it_is_unusable_is_no_failure_of_its_plugin(site: Site) -> None:
    plugin = counting(site, PASSES.replace('"toy", 1', '"toy", 0'))
    report = probe_now(plugin, "")
    assert report.failure is None
    assert [device.ok for device in report.devices] == [False]


def test_a_process_probes_a_plugin_once_unless_asked_again(site: Site, cache: Cache, tmp_path: Path) -> None:
    plugin = counting(site, FAILS)
    probes = Probes(prober(cache), [plugin])
    assert plugin not in probes
    failures = probes.run([plugin])
    assert "not today" in failures[plugin].reason
    assert plugin in probes
    assert probes.run([plugin]) == {}
    assert runs(tmp_path) == 1
    assert set(probes.run([plugin], "nothing")) == {plugin}
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
