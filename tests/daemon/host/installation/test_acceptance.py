"""Plugins are accepted if their probes pass and their names are free."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.installation.acceptance import Acceptance, Installed
from llmd.host.installation.distributions import plugins_in
from llmd.host.listing import known_states
from llmd.host.names import DEVICE_TRIAL
from llmd.host.states import DESCRIPTION, Summary
from tests.plugin_sites import Site


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
