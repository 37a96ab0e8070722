"""Everything about a plugin is known from metadata, its stored state and one probe."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from llmd.host.cache import Cache
from llmd.host.names import discover
from llmd.host.plugin_info import homepage, plugin_info, stated_contract
from tests.plugin_sites import Site

METADATA = """Metadata-Version: 2.1
Name: made-rich
Version: 1.0
Summary: Does much
License-Expression: MIT
Home-page: https://old.example
Project-URL: Source, https://source.example
Requires-Dist: click>=8
"""
SOURCE = """
from llmd.api import Command, hookimpl
LLMD_API = 2

@hookimpl
def llmd_commands():
    return [Command("rich", "Do much.", lambda: None)]
"""


def test_a_working_plugin_with_all_its_facts(site: Site, cache: Cache) -> None:
    plugin = site.write("rich", SOURCE)
    info_folder = site.folder / "made_rich-1.0.dist-info"
    (info_folder / "METADATA").write_text(METADATA)
    (info_folder / "RECORD").write_text("made_rich.py,,\n")
    info = plugin_info(plugin, discover(), cache, ())
    assert (info.summary, info.licence, info.homepage) == ("Does much", "MIT", "https://old.example")
    assert (info.state, info.provides, info.contract) == ("ok", {"command": ("rich",)}, 2)
    assert (info.entry_points, info.requires) == (("rich = made_rich",), ("click>=8",))
    assert (Path(info.location), info.files) == (site.folder, ("made_rich.py",))
    assert 0 < info.import_s < info.probe_s


def test_a_disabled_plugin_is_not_imported(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("segfaults")
    info = plugin_info(plugin, discover(), cache, ["segfaults"])
    assert (info.state, info.reason) == ("disabled", "you disabled it")
    assert info.probe_s == 0


def test_a_broken_plugin_has_its_reason(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("raises_on_import")
    info = plugin_info(plugin, discover(), cache, ())
    assert info.state == "failed"
    assert "another driver" in info.reason
    assert info.fix


def test_the_homepage_is_the_most_useful_address(site: Site) -> None:
    site.write("rich", SOURCE)
    path = site.folder / "made_rich-1.0.dist-info" / "METADATA"
    for text, expected in (
        (METADATA, "https://old.example"),
        (METADATA.replace("Home-page", "X"), "https://source.example"),
    ):
        path.write_text(text)
        assert homepage(metadata.metadata("made-rich")) == expected
    path.write_text("Metadata-Version: 2.1\nName: made-rich\nVersion: 1.0\n")
    assert homepage(metadata.metadata("made-rich")) == ""


def test_the_contract_is_read_without_importing(site: Site) -> None:
    assert stated_contract(site.write("plain", "raise SystemExit\nLLMD_API = 7\n").module) == 7
    assert stated_contract(site.write("silent", "LLMD_API = compute()\n").module) is None
    assert stated_contract(site.write("wrong", "LLMD_API = (\n").module) is None
    assert stated_contract("llmd.builtin.reference.plugin") == 2
