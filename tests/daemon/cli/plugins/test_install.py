"""The output of `llmd plugins install`; tests/packaging/test_plugin_installation.py really installs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.device import DeviceInfo
from llmd.cli.composition import build_choices
from llmd.cli.plugins.install import described, import_notes, remember, show_changes, show_result
from llmd.host.devices import DeviceState
from llmd.host.installation.environment import Environment
from llmd.host.installation.installer import Change, Plan
from llmd.host.installation.targets import Target
from llmd.host.names import PluginName
from llmd.host.probing import ProbeReport
from llmd.host.states import Summary
from tests.packaging.made_wheels import make_plugin
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

PLUGIN = PluginName("made", "made", "made-made", "1.0")


def test_a_dry_run_shows_the_changes_and_installs_nothing(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_plugin(tmp_path, "made-plugin", requires=["made-toolkit"])
    make_plugin(tmp_path, "made-toolkit", "2.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    before = set(Environment.current().site.iterdir())
    document = json.loads(llmd("plugins", "install", "made-plugin", "--dry-run", "--json").out)
    assert document["changes"] == [
        {"distribution": "made-plugin", "before": "", "after": "1.0"},
        {"distribution": "made-toolkit", "before": "", "after": "2.0"},
    ]
    assert (document["plugins"], document["notes"]) == ([], [])
    assert set(Environment.current().site.iterdir()) == before


def test_a_target_that_is_neither_name_nor_path_nor_url_is_refused(llmd: Llmd) -> None:
    done = llmd("plugins", "install", "./nothing")
    assert done.code == 2
    assert "'./nothing' is neither" in done.err


def test_each_change_has_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    show_changes([
        Change("new", "", "1"), Change("other", "1", "2"), Change("same", "1", "1"), Change("gone", "1", ""),
    ])  # fmt: skip
    assert capsys.readouterr().out == "+ new 1\n~ other 1 → 2\n~ same 1\n- gone 1\n"


def test_without_changes_upgrade_is_suggested_once(capsys: pytest.CaptureFixture[str]) -> None:
    show_changes([])
    assert "--upgrade looks for a newer version" in capsys.readouterr().out
    show_changes([], upgrade=True)
    assert capsys.readouterr().out == "nothing to change: already installed\n"


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


def test_notes_for_people_are_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProbeReport(Summary({"backend": ("toys",)}))
    show_result([], {PLUGIN: report}, ["restart it"], as_json=False)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("✓ made (made-made 1.0): backend toys\n", "restart it\n")
    show_result([], {PLUGIN: report}, ["restart it"], as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == ["restart it"]
    assert document["plugins"][0]["distribution"] == "made-made"


def test_what_was_installed_is_remembered(llmd: Llmd, tmp_path: Path) -> None:
    environment = Environment(tmp_path, tmp_path, "venv")
    remember(environment, Plan(Target("/wheels/a.whl", is_file=True), (), tmp_path, "made-plugin"))
    remember(environment, Plan(Target("Made_Other==1", is_file=False), (), tmp_path))
    assert build_choices().installed_in(tmp_path) == {
        "made-plugin": "/wheels/a.whl",
        "made-other": "Made_Other==1",
    }
    build_choices().add_installed(Path(sys.prefix), "made-gone", "made-gone")
    assert "missing" in llmd("plugins", "list").out


def test_a_plugin_that_imports_more_than_the_contract_is_warned_of(site: Site) -> None:
    good = site.write("good", "from llmd.api import hookimpl\n")
    bad = site.write("bad", "import json\nfrom llmd.server.service import Service\n")
    odd = site.write("odd", "this is no Python\n")
    (note,) = import_notes([good, odd, bad])
    assert note.startswith(
        "bad may stop working with another version of llmd: made_bad.py:2 imports llmd.server"
    )
    assert note.endswith("`llmd check bad` shows all")
