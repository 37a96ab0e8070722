"""What a plugin must not change: llmd and everything that it needs."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from llmd.host.installation.core import core_versions, write_constraints


def test_holds_the_core_and_everything_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "constraints.txt"
    write_constraints(core_versions(), path)
    lines = path.read_text().splitlines()
    assert f"llmd-daemon=={metadata.version('llmd-daemon')}" in lines
    assert f"numpy=={metadata.version('numpy')}" in lines
    assert f"multidict=={metadata.version('multidict')}" in lines, "a dependency of a dependency"
    assert not [line for line in lines if line.startswith("llmd-backend-cpu")], "plugins may be replaced"


def test_what_is_not_installed_is_not_held() -> None:
    assert set(core_versions()) <= {found.name for found in metadata.distributions()}


def test_pip_is_always_there() -> None:
    assert any(line.startswith("pip>") for line in metadata.requires("llmd-daemon") or ())
