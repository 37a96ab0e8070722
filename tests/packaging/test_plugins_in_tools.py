"""Plugins in environments that pipx, uv and `make setup` make: installed, kept, removed, refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.environments import UV, Environment, EnvironmentFactory
from tests.packaging.made_wheels import CRASHES, make_plugin
from tests.packaging.user import User

pytestmark = [pytest.mark.packaging, pytest.mark.exhaustive]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    make_plugin(folder, "made-plugin", "1.0")
    return folder


def run(command: list[str], variables: dict[str, str]) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def uv_tool(tmp_path: Path, wheelhouse: Path, index: Path) -> User:
    """Llmd as `uv tool install` puts it."""
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "programs")}
    user = User(Environment(tmp_path / "tools" / "llmd-daemon"), wheelhouse, index, tools)
    run([str(UV), "tool", "install", "-q", "--python", sys.executable, "llmd-daemon"], uv_variables(user))
    return user


def uv_variables(user: User) -> dict[str, str]:
    """Those of the user, with an empty cache: uv's own keeps wheels by version alone."""
    return {**user.variables(), "UV_CACHE_DIR": f"{user.extra['UV_TOOL_DIR']}-cache"}


@pytest.fixture
def pipx(tmp_path: Path, wheelhouse: Path, index: Path) -> User:
    """Llmd as `pipx install` puts it."""
    program = shutil.which("pipx")
    if program is None:
        pytest.skip("pipx is not installed")
    homes = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "programs")}
    user = User(Environment(tmp_path / "pipx" / "venvs" / "llmd-daemon"), wheelhouse, index, homes)
    run([program, "install", "--python", sys.executable, "llmd-daemon"], user.variables())
    return user


@pytest.fixture
def checkout(tmp_path: Path, wheelhouse: Path, index: Path, new_environment: EnvironmentFactory) -> User:
    """A copy of the environment of `make setup`: llmd is installed from its sources, editable."""
    user = User(new_environment("llmd-daemon"), wheelhouse, index)
    prefix = user.environment.prefix
    user.environment.uv("uninstall", "llmd-daemon")
    for file in metadata.distribution("llmd-daemon").files or ():
        path = Path(os.path.normpath(str(file.locate())))
        target = prefix / path.relative_to(sys.prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text().replace(sys.prefix, str(prefix)))
        target.chmod(path.stat().st_mode)
    return user


@pytest.fixture(params=["uv_tool", "pipx", "checkout"])
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    user = request.getfixturevalue(request.param)
    assert isinstance(user, User)
    yield user
    user.llmd("plugins", "uninstall", "made-plugin")


def test_installs_rolls_back_and_uninstalls(user: User, index: Path) -> None:
    before = user.environment.uv("freeze")
    done = user.llmd("plugins", "install", "made-plugin")
    assert done.returncode == 0, done.stderr
    assert any(word in done.stderr for word in ("pipx inject", "uv tool install", "make setup"))
    assert user.llmd("made-plugin", "--help").returncode == 1, "its command has no click.Command"
    installed = user.environment.uv("freeze")
    assert "made-plugin==1.0" in installed

    make_plugin(index, "made-plugin", "2.0", source=CRASHES)
    assert user.llmd("plugins", "install", "made-plugin", "--upgrade").returncode == 1
    assert user.environment.uv("freeze") == installed
    assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0
    assert user.environment.uv("freeze") == before


def test_an_upgrade_by_uv_removes_the_plugin_and_llmd_says_so(uv_tool: User) -> None:
    installed = uv_tool.llmd("plugins", "install", "made-plugin")
    command = installed.stderr.partition("run: ")[2].split()
    run([str(UV), "tool", "upgrade", "llmd-daemon"], uv_variables(uv_tool))
    assert "made-plugin" not in uv_tool.environment.uv("freeze")
    (row,) = [one for one in uv_tool.json("plugins", "list")["plugins"] if one["state"] == "missing"]
    assert (row["name"], "llmd plugins install made-plugin" in row["fix"]) == ("made-plugin", True)

    assert uv_tool.llmd("plugins", "install", "made-plugin").returncode == 0
    assert command == ["uv", "tool", "install", "llmd-daemon", "--with", "made-plugin"]
    run([str(UV), *command[1:], "--python", sys.executable], uv_variables(uv_tool))
    run([str(UV), "tool", "upgrade", "llmd-daemon"], uv_variables(uv_tool))
    assert "made-plugin==1.0" in uv_tool.environment.uv("freeze")
    removed = uv_tool.llmd("plugins", "uninstall", "made-plugin")
    assert "run: uv tool install llmd-daemon" in removed.stderr


def test_a_plugin_that_pipx_knows_survives_its_reinstallation(pipx: User) -> None:
    installed = pipx.llmd("plugins", "install", "made-plugin")
    command = installed.stderr.partition("run: ")[2].split()
    run(["pipx", "upgrade", "llmd-daemon"], pipx.variables())
    assert "made-plugin==1.0" in pipx.environment.uv("freeze")
    run(command, pipx.variables())
    run(["pipx", "reinstall", "--python", sys.executable, "llmd-daemon"], pipx.variables())
    assert "made-plugin==1.0" in pipx.environment.uv("freeze")
    removed = pipx.llmd("plugins", "uninstall", "made-plugin")
    assert "run: pipx uninject llmd-daemon made-plugin" in removed.stderr


def test_a_checkout_says_what_make_setup_does(checkout: User) -> None:
    assert "`make setup` removes the plugin" in checkout.llmd("plugins", "install", "made-plugin").stderr
