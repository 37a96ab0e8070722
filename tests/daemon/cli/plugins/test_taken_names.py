"""A new plugin needs a name of its own."""

from __future__ import annotations

import pytest

from llmd.api.errors import ConflictError
from llmd.cli.plugins.taken_names import check_free
from llmd.host.names import CORE_DISTRIBUTION
from llmd.host.states import PluginState
from tests.plugin_sites import Site

PLUGINS = (
    PluginState(
        "parsers", CORE_DISTRIBUTION, "1", "a", "description", "ok", provides={"parser": ("hermes",)}
    ),
    PluginState("shout", "made-shout", "2", "b", "description", "ok", provides={"command": ("cry",)}),
    PluginState("broken", "made-broken", "1", "c", "description", "failed"),
)


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("backend", "cpu", "llmd-backend-cpu is the name of a part of llmd"),
        ("tool-parser", "hermes", "llmd itself has a parser 'hermes'"),
        ("reasoning-parser", "hermes", "llmd itself has a parser 'hermes'"),
        ("command", "cry", "made-shout 2 has a command 'cry'"),
        ("dialect", "broken", "made-broken 1 has a plugin 'broken'"),
    ],
)
def test_a_name_that_is_taken_is_refused(kind: str, name: str, reason: str) -> None:
    with pytest.raises(ConflictError) as caught:
        check_free(kind, name, PLUGINS)
    assert (caught.value.message, caught.value.hint) == (reason, "choose another name")


def test_a_distribution_that_is_installed_is_not_made_again(site: Site) -> None:
    site.announce("llmd-command-hello", "3.0", {"other": "made_other"})
    with pytest.raises(ConflictError, match=r"llmd-command-hello 3\.0 is installed already"):
        check_free("command", "hello", ())


def test_the_same_name_is_free_in_another_kind() -> None:
    check_free("backend", "hermes", PLUGINS)
    check_free("command", "hello", PLUGINS)
