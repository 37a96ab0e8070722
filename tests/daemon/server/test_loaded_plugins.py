"""A daemon knows which code it has loaded; tests/daemon/server/test_reloader.py reloads whole daemons."""

from __future__ import annotations

import pytest

from llmd.host.cache import Cache
from llmd.host.code_changes import ChangedPlugin
from llmd.host.names import CORE_DISTRIBUTION, PluginName
from llmd.host.plugin_host import PluginHost
from llmd.server.loaded_plugins import LoadedPlugins
from tests.plugin_sites import Site

PARSER = """
from llmd.api import Parser, hookimpl

LLMD_API = 2

@hookimpl
def llmd_parsers():
    return [Parser("quiet", "calls", matches=lambda template: 0, load=lambda: None)]
"""
CODE_FAILS = PARSER + "raise RuntimeError('edited')\n"


@pytest.fixture
def plugin(site: Site) -> PluginName:
    return site.write("quiet", PARSER)


def host_of(cache: Cache, *plugins: PluginName) -> PluginHost:
    return PluginHost(plugins, cache)


def test_nothing_has_changed(plugin: PluginName, cache: Cache) -> None:
    host = host_of(cache, plugin)
    assert not LoadedPlugins(host).changes(host, host_of(cache, plugin))


def test_new_code_that_fails_leaves_the_old_parser_in_use(
    site: Site, plugin: PluginName, cache: Cache
) -> None:
    old = host_of(cache, plugin)
    loaded = LoadedPlugins(old)
    assert set(old.parsers()) == {"quiet"}
    (site.folder / "made_quiet.py").write_text(CODE_FAILS)
    new = host_of(cache, plugin)
    (change,) = loaded.changes(old, new).changed
    assert (change.applies, "RuntimeError: edited" in change.reason) == ("restart", True)
    assert set(new.parsers()) == {"quiet"}
    assert host_of(cache, plugin).summary(plugin).failure is None, "this process has imported it"


def test_a_reverted_edit_is_no_change(site: Site, plugin: PluginName, cache: Cache) -> None:
    host = host_of(cache, plugin)
    loaded = LoadedPlugins(host)
    host.parsers()
    newer = PluginName(plugin.name, plugin.module, plugin.distribution, "2.0")
    changes = loaded.changes(host, host_of(cache, newer))
    assert changes.changed == (ChangedPlugin(str(newer), "restart"),)
    loaded.use(changes)
    assert not loaded.changes(host, host_of(cache, plugin))


def test_a_new_version_of_llmd_is_one_change(cache: Cache) -> None:
    modules = {"hermes": "llmd.builtin.parsers.plugin", "reference": "llmd.builtin.reference.plugin"}
    old = [PluginName(name, module, CORE_DISTRIBUTION, "1") for name, module in modules.items()]
    new = [PluginName(name, module, CORE_DISTRIBUTION, "2") for name, module in modules.items()]
    before = host_of(cache, *old)
    changes = LoadedPlugins(before).changes(before, host_of(cache, *new))
    assert changes.changed == (ChangedPlugin(f"{CORE_DISTRIBUTION} 2", "restart"),)
