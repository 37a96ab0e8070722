"""Every process builds its own objects, from the folders of its user."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.cli.composition import (
    build_benchmarks,
    build_host,
    build_names,
    cache_folder,
    cached_subcommands,
    plugin_subcommands,
)
from tests.plugin_sites import Site

COMMAND = """
from llmd.api import Command, hookimpl
LLMD_API = 2

@hookimpl
def llmd_commands():
    return [Command("greet", "Say hello.", print)]
"""


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_results_are_kept_in_the_users_cache(cache_home: Path) -> None:
    assert cache_folder() == cache_home / "llmd"


def test_nothing_is_shared() -> None:
    assert build_host() is not build_host()
    assert build_benchmarks() is not build_benchmarks()


def test_the_host_has_every_plugin_of_the_environment(site: Site) -> None:
    site.install("hangs")
    names = [plugin.name for plugin in build_names()]
    assert "hangs" in names
    assert [state.name for state in build_host().plugins()] == names


def test_verbs_of_plugins_are_stored_after_the_first_look(site: Site) -> None:
    plugin = site.write("greeter", COMMAND)
    assert plugin_subcommands()["greet"] == "Say hello."
    (site.folder / f"{plugin.module}.py").touch()  # another fingerprint: it is described again
    assert plugin_subcommands()["greet"] == "Say hello."


def test_subcommands_in_the_cache_are_known_without_their_plugins(site: Site) -> None:
    assert cached_subcommands() == {}
    site.write("greeter", COMMAND)
    plugin_subcommands()
    assert cached_subcommands()["greet"] == "Say hello."
