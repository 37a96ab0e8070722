"""Plugins are installed next to the core, which does not change."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, NotFoundError, PluginError
from llmd.host.installer import (
    Change,
    Pip,
    Uv,
    checked_target,
    core_constraints,
    core_versions,
    find_tool,
    pip_changes,
    uv_changes,
)

UV_REPORT = """Using Python 3.11.7 environment at: /tmp/environment
Resolved 3 packages in 12ms
Would download 2 packages
Would uninstall 1 package
Would install 2 packages
 - llmd-backend-gpu==0.1.0
 + llmd-backend-gpu==0.2.0
 + some.toolkit==13.1
 ~ made-plugin @ file:///home/me/plugin
"""


def test_holds_the_core_and_everything_it_needs() -> None:
    with core_constraints() as path:
        lines = path.read_text().splitlines()
    assert f"llmd-daemon=={metadata.version('llmd-daemon')}" in lines
    assert f"numpy=={metadata.version('numpy')}" in lines
    assert f"multidict=={metadata.version('multidict')}" in lines, "a dependency of a dependency"
    assert not [line for line in lines if line.startswith("llmd-backend-cpu")], "plugins may be replaced"


def test_what_is_not_installed_is_not_held() -> None:
    assert set(core_versions()) <= {found.name for found in metadata.distributions()}


def test_reads_what_uv_would_change() -> None:
    assert list(uv_changes(UV_REPORT)) == [
        Change("llmd-backend-gpu", "0.1.0", "0.2.0"),
        Change("made-plugin", "file:///home/me/plugin", "file:///home/me/plugin"),
        Change("some.toolkit", "", "13.1"),
    ]


def test_reads_what_pip_would_change() -> None:
    report = '{"install": [{"metadata": {"name": "numpy", "version": "99"}}, {"metadata": {"name": "new", "version": "1"}}]}'
    assert list(pip_changes(report)) == [
        Change("numpy", metadata.version("numpy"), "99"),
        Change("new", "", "1"),
    ]


def test_a_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin").mkdir()
    assert checked_target("./plugin") == str(tmp_path / "plugin")


def test_a_name_is_not_taken_for_a_folder_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llmd-backend-gpu").mkdir()
    assert checked_target("llmd-backend-gpu") == "llmd-backend-gpu"


@pytest.mark.parametrize(
    "name", ["llmd-backend-gpu", "a", "a_b.c==1.0", "name[extra]>=2", "name~=1.2", "name != 3"]
)
def test_names_may_have_versions(name: str) -> None:
    assert checked_target(name) == name


@pytest.mark.parametrize(
    "target", ["", "--index-url=https://example.org", "-r", "./nothing", "a @ https://example.org/a", "a; b"]
)
def test_anything_else_is_refused(target: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked_target(target)
    assert repr(target) in caught.value.message


def test_the_environment_of_llmd_has_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make setup` creates it with uv, which installs pip only if something requires it."""
    assert any(line.startswith("pip>") for line in metadata.requires("llmd-daemon") or ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tool() == Pip()


def test_uv_is_taken_where_it_is_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "uv"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tool() == Uv(str(program))


def test_pip_is_taken_where_there_is_no_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "pip.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert find_tool() == Pip()


def test_an_environment_without_either_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    importlib.invalidate_caches()
    with pytest.raises(NotFoundError, match="neither uv nor pip") as caught:
        find_tool()
    assert "ensurepip" in caught.value.hint


def test_what_the_tool_says_is_the_reason(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\necho "no solution: $*" >&2\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(PluginError, match="no solution: pip install") as caught:
        Uv(str(program)).install("llmd-backend-gpu", tmp_path / "constraints.txt")
    assert (
        f"--python {sys.executable} --constraint {tmp_path}/constraints.txt llmd-backend-gpu"
        in caught.value.message
    )
