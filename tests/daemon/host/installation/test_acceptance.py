"""Plugins are accepted if their probes pass and their names are free."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.device import DeviceInfo
from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.installation.acceptance import Acceptance, Installed, faulty_devices
from llmd.host.installation.distributions import plugins_in
from llmd.host.listing import known_states
from llmd.host.names import DEVICE_TRIAL, PluginName
from llmd.host.probing import ProbeReport
from llmd.host.states import DESCRIPTION, Summary
from tests.packaging.made_wheels import PLUGIN
from tests.plugin_sites import Site

TOY = PluginName("toy", "toy", "made-toy", "1.0")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Site:
    """A folder that is not on the search path."""
    (tmp_path / "elsewhere").mkdir()
    return Site(tmp_path / "elsewhere")


def test_a_plugin_is_tried_before_it_is_installed(elsewhere: Site, cache: Cache) -> None:
    elsewhere.install("twin_one")
    plugins = plugins_in([elsewhere.folder])
    accept = Acceptance(cache)
    accept(plugins, (str(elsewhere.folder),))
    (report,) = accept.reports.values()
    assert report.summary.provides == {"backend": ("twin",)}
    assert 0 < report.import_s < report.probe_s
    assert Installed.of(plugins[0], report).name == "twin-one"


def test_an_installed_plugin_is_known_afterwards(site: Site, cache: Cache) -> None:
    plugins = site.install("twin_one")
    Acceptance(cache)(plugins, ())
    (state,) = known_states(plugins, cache, DEVICE_TRIAL)
    assert (state.state, state.phase) == ("ok", "probe")


def test_a_failed_probe_refuses_with_reason_and_fix(elsewhere: Site, cache: Cache) -> None:
    elsewhere.install("raises_on_import")
    with pytest.raises(PluginError, match=r"was not installed: its probe failed: .*another driver") as caught:
        Acceptance(cache)(plugins_in([elsewhere.folder]), (str(elsewhere.folder),))
    assert caught.value.hint == (
        "nothing was changed; report it to its authors, or try another version:"
        " `llmd plugins install trial-raises==VERSION`"
    )


def test_a_name_that_another_plugin_has_refuses(site: Site, elsewhere: Site, cache: Cache) -> None:
    (installed,) = site.install("twin_one")
    Acceptance(cache)([installed], ())
    elsewhere.install("twin_two")
    with pytest.raises(PluginError, match=r"claims the backend 'twin', which trial-twin-one 1\.0") as caught:
        Acceptance(cache)(plugins_in([elsewhere.folder]), (str(elsewhere.folder),))
    assert caught.value.hint == "nothing was changed; uninstall or disable the other one first"


def test_a_new_version_may_have_the_names_of_the_old_one(site: Site, elsewhere: Site, cache: Cache) -> None:
    (installed,) = site.install("twin_one")
    Acceptance(cache)([installed], ())
    assert cache.get(DESCRIPTION, installed.key, "", Summary) is None
    elsewhere.install("twin_one")
    Acceptance(cache)(plugins_in([elsewhere.folder]), (str(elsewhere.folder),))


def test_a_backend_that_computes_wrongly_is_refused(elsewhere: Site, cache: Cache, example: Path) -> None:
    elsewhere.install_project(example)
    linear = elsewhere.folder / "llmd_backend_example" / "kernels" / "linear.py"
    linear.write_text(linear.read_text().replace("x @ self._matrix.T", "x @ (self._matrix.T * 1.01)"))
    with pytest.raises(PluginError, match=r"was not installed: device example: linear/f32: NMSE") as caught:
        Acceptance(cache)(plugins_in([elsewhere.folder]), (str(elsewhere.folder),))
    assert "`llmd check example` then shows each case" in caught.value.hint


@pytest.mark.parametrize(
    ("devices", "faulty"),
    [
        ([("one", 5, False)], ["one"]),
        ([("one", 5, False), ("two", 1, True)], []),
        ([("absent", 0, False)], []),
        ([("absent", 0, False), ("one", 5, False)], ["one"]),
        ([], []),
    ],
)
def test_one_device_must_work_if_the_hardware_is_there(
    devices: list[tuple[str, int, bool]], faulty: list[str]
) -> None:
    states = tuple(
        DeviceState(DeviceInfo(name, "toy", score, 1, (), (), ()), "toys", TOY, ok=ok)
        for name, score, ok in devices
    )
    assert [one.info.name for one in faulty_devices(ProbeReport(Summary(), states))] == faulty


def test_a_command_of_llmd_is_no_name_for_a_plugin(elsewhere: Site, cache: Cache) -> None:
    plugin = elsewhere.folder / "made_mine.py"
    elsewhere.announce("made-mine", "1.0", {"mine": "made_mine"})
    plugin.write_text(PLUGIN.format(command="run"))
    with pytest.raises(PluginError, match="claims the command 'run', which llmd-daemon") as caught:
        Acceptance(cache)(plugins_in([elsewhere.folder]), (str(elsewhere.folder),))
    assert caught.value.hint == "nothing was changed; the name belongs to llmd; give the plugin another one"
