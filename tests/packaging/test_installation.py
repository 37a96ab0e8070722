"""What a user gets who installs our wheels."""

from __future__ import annotations

import json

import pytest

from tests.environments import Environment

pytestmark = pytest.mark.packaging

ENTRY_POINTS = """
import json
from importlib.metadata import entry_points
print(json.dumps({point.name: point.value for point in entry_points(group="llmd")}))
"""

LOADED = """
from importlib.metadata import entry_points
for point in entry_points(group="llmd"):
    point.load()
    print(point.name)
"""


def test_command_shows_its_help(installed: Environment) -> None:
    assert "serve" in installed.run("llmd", "--help")


def test_command_works_without_any_plugin(daemon_alone: Environment) -> None:
    assert "serve" in daemon_alone.run("llmd", "--help")


def test_plugins_are_found_through_their_entry_points(installed: Environment) -> None:
    found = json.loads(installed.run("python", "-c", ENTRY_POINTS))
    assert found["cpu"] == "llmd_backend_cpu.plugin"
    assert found["local"] == "llmd_transport.local"


def test_every_entry_point_loads(installed: Environment) -> None:
    assert {"cpu", "local"} <= set(installed.run("python", "-c", LOADED).split())


def test_plugins_are_absent_until_they_are_installed(daemon_alone: Environment) -> None:
    assert not {"cpu", "local"} & set(json.loads(daemon_alone.run("python", "-c", ENTRY_POINTS)))


@pytest.mark.parametrize("root", ["llmd", "llmd_backend_cpu", "llmd_transport", "llmd_tui"])
def test_importing_a_root_imports_nothing_else(installed: Environment, root: str) -> None:
    program = (
        f"import sys; before = set(sys.modules); import {root}; print(*sorted(set(sys.modules) - before))"
    )
    assert installed.run("python", "-c", program).split() == [root]
