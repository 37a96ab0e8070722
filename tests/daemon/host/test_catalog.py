"""A plugin is imported once for its summary, and again only for its objects."""

from __future__ import annotations

import sys

import pytest

from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.catalog import Catalog, described_commands
from tests.plugin_sites import Site

COMMAND = """
from llmd.api import Command, hookimpl
LLMD_API = 2

@hookimpl
def llmd_commands():
    return [Command("greet", "Say hello.", print)]
"""


def test_a_stored_summary_needs_no_import(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("hangs")
    summary = Catalog(cache).summary(plugin)
    del sys.modules[plugin.module]
    assert Catalog(cache).summary(plugin) == summary
    assert plugin.module not in sys.modules


def test_a_stored_failure_is_known_but_tried_again(site: Site, cache: Cache) -> None:
    plugin = site.write("unlucky", "import made_missing\n")
    catalog = Catalog(cache)
    assert catalog.summary(plugin).failure
    known = catalog.known(plugin)
    assert known is not None
    assert known.failure
    (site.folder / "made_missing.py").touch()
    failure = catalog.summary(plugin).failure
    assert failure is not None
    assert "LLMD_API" in failure.reason


def test_objects_are_made_once(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("hangs")
    catalog = Catalog(cache)
    assert catalog.description(plugin) is catalog.description(plugin)


def test_objects_of_a_broken_plugin_are_an_error(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("raises_on_import")
    with pytest.raises(PluginError, match="another driver"):
        Catalog(cache).description(plugin)


def test_verbs_come_from_plugins_the_first_time_and_are_stored_then(site: Site, cache: Cache) -> None:
    site.write("greeter", COMMAND)
    plugins = site.install("raises_on_import")
    assert described_commands(plugins, cache) == {"greet": "Say hello."}
    del sys.modules["made_greeter"]
    assert described_commands(plugins, cache) == {"greet": "Say hello."}
    assert "made_greeter" not in sys.modules
