"""Plugins are named as in the listing; those that llmd needs cannot be disabled."""

from __future__ import annotations

import pytest

from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli.plugins.choosing import NEEDED, choose, find_plugin
from llmd.host.names import PluginName, discover

PLUGINS = (PluginName("one", "a", "Made_Both", "1"), PluginName("two", "b", "Made_Both", "1"))


def test_a_plugin_comes_before_a_distribution() -> None:
    assert find_plugin("two", PLUGINS) == PLUGINS[1]
    assert find_plugin("made-both", PLUGINS) == PLUGINS[0]


def test_a_mistyped_name_gets_the_nearest() -> None:
    with pytest.raises(NotFoundError) as caught:
        find_plugin("onne", PLUGINS)
    assert "did you mean one?" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        find_plugin("zzz", PLUGINS)
    assert caught.value.hint == "see `llmd plugins list`"


@pytest.mark.parametrize("name", NEEDED)
def test_llmd_needs_some_of_its_own(name: str) -> None:
    assert name in {plugin.name for plugin in discover()}
    with pytest.raises(ConfigError, match="cannot be disabled"):
        choose(name, enabled=False, as_json=False)
