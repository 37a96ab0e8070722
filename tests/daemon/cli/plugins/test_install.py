"""The output of `llmd plugins install`; tests/packaging/test_plugins.py really installs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.device import DeviceInfo
from llmd.api.errors import PluginError
from llmd.cli.composition import build_names
from llmd.cli.plugins.install import described, probe_new, refuse_failures, show_changes
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.installer import Change
from llmd.host.listing import known_states
from llmd.host.names import DEVICE_TRIAL, PluginName
from llmd.host.probing import ProbeReport
from llmd.host.states import Failure, Summary
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

PLUGIN = PluginName("made", "made", "made-made", "1.0")
FAILED = ProbeReport(Summary(), failure=Failure("probe", "it hung", "wake it"))


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake uv that only reports what it would do; returns the file with the arguments of its calls."""
    calls = tmp_path / "calls"
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\necho " + made-made==1.0" >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return calls


def test_a_dry_run_shows_the_changes_and_installs_nothing(llmd: Llmd, uv: Path) -> None:
    done = llmd("plugins", "install", "made-made", "--dry-run")
    assert (done.code, done.out) == (0, "+ made-made 1.0\n")
    assert all(line.endswith("--dry-run") for line in uv.read_text().splitlines())


def test_a_dry_run_as_json(llmd: Llmd, uv: Path) -> None:
    document = json.loads(llmd("plugins", "install", "made-made", "--dry-run", "--json").out)
    assert document["changes"] == [{"distribution": "made-made", "before": "", "after": "1.0"}]
    assert document["plugins"] == []


def test_installs_after_it_has_shown_the_changes(llmd: Llmd, uv: Path) -> None:
    assert llmd("plugins", "install", "made-made").code == 0
    first, second = uv.read_text().splitlines()
    assert first == f"{second} --dry-run"


def test_a_target_that_is_neither_name_nor_path_is_refused(llmd: Llmd, uv: Path) -> None:
    done = llmd("plugins", "install", "./nothing")
    assert done.code == 2
    assert "'./nothing' is neither" in done.err
    assert not uv.exists()


def test_each_change_has_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    show_changes([Change("new", "", "1"), Change("other", "1", "2"), Change("gone", "1", "")])
    assert capsys.readouterr().out == "+ new 1\n~ other 1 → 2\n- gone 1\n"
    show_changes([])
    assert "nothing to change" in capsys.readouterr().out


def test_probes_what_came_and_what_was_replaced(site: Site, cache: Cache) -> None:
    one, two = site.install("twin_one", "twin_two")
    before = set(build_names())
    assert probe_new(before, [], cache) == {}
    assert set(probe_new(before, [Change("Trial_Twin_Two", "0.9", "1.0")], cache)) == {two}
    assert set(probe_new(before - {one}, [], cache)) == {one}


def test_listing_afterwards_knows_what_was_found(site: Site, cache: Cache) -> None:
    plugins = site.install("twin_one", "segfaults")
    probe_new(set(build_names()) - set(plugins), [], cache)
    states = {state.name: state for state in known_states(plugins, cache, DEVICE_TRIAL)}
    assert (states["twin-one"].state, states["twin-one"].phase) == ("ok", "probe")
    assert states["twin-one"].provides == {"backend": ("twin",)}
    assert (states["segfaults"].state, states["segfaults"].phase) == ("failed", "probe")


def test_devices_stand_below_their_plugin() -> None:
    info = DeviceInfo("toy:0", "toy", 1, 1, ("f32",), ("f32",), ())
    devices = (
        DeviceState(info, "toys", PLUGIN, ok=True),
        DeviceState(info, "toys", PLUGIN, ok=False, reason="broken"),
    )
    report = ProbeReport(Summary({"backend": ("toys",)}), devices)
    assert described(PLUGIN, report).splitlines() == [
        "✓ made (made-made 1.0): backend toys",
        "  ✓ device toy:0",
        "  ! device toy:0 – broken",
    ]
    assert described(PLUGIN, FAILED) == "✗ made (made-made 1.0): it hung"


def test_a_failing_probe_is_an_error() -> None:
    refuse_failures({PLUGIN: ProbeReport(Summary())})
    with pytest.raises(PluginError, match="is installed, but its probe failed: it hung") as caught:
        refuse_failures({PLUGIN: FAILED})
    assert caught.value.hint == "wake it"
    assert caught.value.exit_code == 1
