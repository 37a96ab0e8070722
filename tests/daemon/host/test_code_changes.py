"""What changed on disk is found by version and files; the kind of plugin decides when it is used."""

from __future__ import annotations

import importlib

import pytest

from llmd.host.code_changes import changed_plugins, code_of, is_imported, when_used
from llmd.host.names import CORE_DISTRIBUTION, PluginName
from tests.plugin_sites import Site


def test_other_files_and_other_versions_are_changes(site: Site) -> None:
    plugin = site.write("edited", "LLMD_API = 2\n")
    before = code_of([plugin])
    assert changed_plugins(before, code_of([plugin])) == []
    assert changed_plugins(before, {}) == changed_plugins({}, before) == []
    (site.folder / "made_edited.py").write_text("LLMD_API = 3 - 1\n")
    assert changed_plugins(before, code_of([plugin])) == [(plugin, plugin)]
    newer = PluginName(plugin.name, plugin.module, plugin.distribution, "2.0")
    assert changed_plugins(before, code_of([newer])) == [(plugin, newer)]


def test_knows_what_this_process_has_imported(site: Site) -> None:
    plugin = site.write("imported", "LLMD_API = 2\n")
    assert not is_imported(plugin)
    importlib.import_module(plugin.module)
    assert is_imported(plugin)


@pytest.mark.parametrize(
    ("kinds", "imported", "applies"),
    [
        (["parser"], True, "restart"),
        (["dialect", "backend"], True, "restart"),
        (["parser"], False, "now"),
        (["backend"], True, "next_load"),
        (["architecture", "command"], False, "next_load"),
        (["command"], True, "now"),
    ],
)
def test_the_kind_decides_when_new_code_is_used(kinds: list[str], *, imported: bool, applies: str) -> None:
    assert when_used(kinds, imported=imported) == applies


def test_files_of_llmd_itself_are_not_looked_at() -> None:
    plugin = PluginName("hermes", "llmd.builtin.parsers.plugin", CORE_DISTRIBUTION, "1")
    assert code_of([plugin])[plugin.key].files == ""
