"""`llmd plugins list` reads only metadata and stored states."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from llmd.cli.plugins.listing import described_state, provided
from llmd.host.states import PluginState
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

FAILED = PluginState(
    "bad", "made-bad", "1.0", "bad", "probe", "failed", "it hung", "wake it", {"backend": ("a", "b")}
)


def test_lists_every_plugin_with_its_distribution_and_version(llmd: Llmd, site: Site) -> None:
    site.install("other_contract")
    rows = [line.split("\t") for line in llmd("plugins", "list", "--plain").out.splitlines()]
    assert rows[0] == ["NAME", "DISTRIBUTION", "VERSION", "PROVIDES", "STATE"]
    assert ["other", "trial-other-contract", "3.1"] in [row[:3] for row in rows]
    assert "reference" in [row[0] for row in rows]


def test_json_has_a_schema_and_every_field(llmd: Llmd, site: Site) -> None:
    site.install("other_contract")
    document = json.loads(llmd("plugins", "list", "--json").out)
    assert document["schema"] == 1
    other = next(plugin for plugin in document["plugins"] if plugin["name"] == "other")
    assert set(other) == {*PluginState.__struct_fields__, "grain", "mend"}
    assert other["state"] == "unknown"


def test_imports_no_plugin_in_a_fresh_interpreter(site: Site) -> None:
    site.install("raises_on_import", "segfaults")
    code = """
import sys
from llmd.cli.composition import build_names
from llmd.cli.main import run
sys.path.insert(0, sys.argv[1])
assert run(["plugins", "list"]) == 0
modules = {plugin.module for plugin in build_names()} - {"llmd.cli.commands"}
assert {"trial_raises", "llmd.builtin.reference.plugin", "llmd_transport.local"} <= modules, modules
assert not modules & set(sys.modules), modules & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(site.folder)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_failure_shows_phase_reason_and_fix() -> None:
    assert described_state(FAILED) == "failed (probe): it hung → wake it"
    assert provided(FAILED.provides) == "backend a b"


def test_a_plugin_that_provides_much_shows_the_first_names(llmd: Llmd) -> None:
    names = tuple("abcde")
    assert provided({"parser": names, "backend": names[:3]}) == "parser a b c and 2 more; backend a b c"
    llmd("doctor")
    assert max(map(len, llmd("plugins", "list").out.splitlines())) < 150
    plugins = {
        plugin["name"]: plugin for plugin in json.loads(llmd("plugins", "list", "--json").out)["plugins"]
    }
    assert len(plugins["architectures"]["provides"]["architecture"]) > 40


def test_an_unknown_state_says_who_looks() -> None:
    assert "llmd doctor" in described_state(PluginState("new", "made-new", "1.0", "new", "name", "unknown"))
    assert described_state(PluginState("good", "made-good", "1.0", "good", "probe", "ok")) == "ok"
