"""A fingerprint changes only with what a result depends on."""

from __future__ import annotations

import msgspec
import pytest

from llmd.host.fingerprint import (
    benchmark_fingerprint,
    machine_fingerprint,
    plugin_fingerprint,
    probe_fingerprint,
)
from tests.plugin_sites import Site


def test_stays_while_nothing_changes(site: Site) -> None:
    (plugin,) = site.install("hangs")
    assert plugin_fingerprint(plugin) == plugin_fingerprint(plugin)
    assert machine_fingerprint() == machine_fingerprint()


def test_changes_with_a_file_of_the_plugin(site: Site) -> None:
    (plugin,) = site.install("hangs")
    before = plugin_fingerprint(plugin)
    (site.folder / "trial_hangs.py").write_text("LLMD_API = 2\n")
    assert plugin_fingerprint(plugin) != before


def test_changes_with_the_version(site: Site) -> None:
    (plugin,) = site.install("hangs")
    newer = msgspec.structs.replace(plugin, version="2.0")
    assert plugin_fingerprint(plugin) != plugin_fingerprint(newer)


def test_a_probe_depends_on_machine_and_trial(site: Site) -> None:
    (plugin,) = site.install("hangs")
    prints = {
        probe_fingerprint(plugin, machine, trial) for machine in ("here", "there") for trial in ("", "a:b")
    }
    assert len(prints) == 4


def test_a_benchmark_depends_on_the_hardware(site: Site) -> None:
    (plugin,) = site.install("hangs")
    assert benchmark_fingerprint(plugin, "here", "A100") != benchmark_fingerprint(plugin, "here", "H100")


def test_variables_that_choose_devices_change_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine_fingerprint()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert machine_fingerprint() != before
