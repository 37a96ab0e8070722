"""A plugin is checked as a whole: its description, its imports, and everything that it provides."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from llmd.host.names import PluginName
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.plugin_checks import check_plugin, foreign_imports, imported
from llmd.testing.plugins.results import NotTested, Result
from tests.plugin_sites import EXAMPLE, Site

EXAMPLES = sorted(path.parent.name for path in EXAMPLE.parent.glob("*/pyproject.toml"))
BAD = """
import llmd
from llmd.api import Command, hookimpl
from llmd.host.names import discover

LLMD_API = 2


@hookimpl
def llmd_commands():
    return [Command("bad", "Be bad.", lambda: None)]
"""


def failed(results: Iterable[Result]) -> dict[str, str]:
    """Return the problems by case; nothing may be left untested."""
    cases = list(results)
    assert not [one for one in cases if isinstance(one, NotTested)]
    return {one.name: one.problem for one in cases if isinstance(one, CaseResult) and one.problem}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_passes(site: Site, name: str) -> None:
    (plugin,) = site.install_project(EXAMPLE.parent / name)
    results = list(check_plugin(plugin))
    assert failed(results) == {}
    assert len(results) >= 2


def test_each_fault_is_a_failed_case(site: Site) -> None:
    found = failed(check_plugin(site.write("bad", BAD)))
    assert found["imports only llmd.api"] == (
        "made_bad.py:2 imports llmd; made_bad.py:4 imports llmd.host.names"
    )
    assert "load returned a NoneType" in found["command bad: loads and shows its help"]


def test_a_plugin_that_cannot_be_described_has_that_reason(site: Site) -> None:
    assert "LLMD_API is None" in failed(check_plugin(site.write("silent", "")))["description"]


def test_built_in_plugins_may_import_all_of_llmd() -> None:
    plugin = PluginName("rerank", "llmd.server.dialects.rerank.plugin", "llmd-daemon", "1")
    assert failed(check_plugin(plugin)) == {}


def test_imports_are_found_wherever_they_stand(site: Site) -> None:
    source = "import os.path\nfrom llmd import api, host\nfrom . import near\ndef f():\n    import llmd.engine.core\n"
    assert list(imported(source)) == [
        ("os.path", 1),
        ("llmd.api", 2),
        ("llmd.host", 2),
        ("llmd.engine.core", 5),
    ]
    assert foreign_imports(site.write("late", source)) == [
        "made_late.py:2 imports llmd.host",
        "made_late.py:5 imports llmd.engine.core",
    ]
