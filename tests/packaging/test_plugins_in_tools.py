"""Plugins in environments that pipx, uv and `make setup` make: installed, kept, removed, refused.

`test_plugin_installation.py` does the same in a virtual environment.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from tests.environments import UV, Environment, EnvironmentFactory
from tests.packaging.interruption import begun
from tests.packaging.made_wheels import CRASHES, HANGS_IN_PLACE, make_plugin
from tests.packaging.user import User

pytestmark = [pytest.mark.packaging, pytest.mark.exhaustive]


def run(command: list[str], variables: dict[str, str]) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def uv_tool(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> User:
    """Llmd as `uv tool install` puts it."""
    folder = tmp_path_factory.mktemp("uv")
    tools = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "programs")}
    user = User(Environment(folder / "tools" / "llmd-daemon"), wheelhouse, extra=tools)
    run([str(UV), "tool", "install", "-q", "--python", sys.executable, "llmd-daemon"], uv_variables(user))
    return user


def uv_variables(user: User) -> dict[str, str]:
    """Those of the user, with an empty cache: uv's own keeps wheels by version alone."""
    return {**user.variables(), "UV_CACHE_DIR": f"{user.extra['UV_TOOL_DIR']}-cache"}


@pytest.fixture(scope="module")
def pipx(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> User:
    """Llmd as `pipx install` puts it."""
    program = shutil.which("pipx")
    if program is None:
        pytest.skip("pipx is not installed")
    folder = tmp_path_factory.mktemp("pipx")
    homes = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "programs")}
    user = User(Environment(folder / "pipx" / "venvs" / "llmd-daemon"), wheelhouse, extra=homes)
    run([program, "install", "--python", sys.executable, "llmd-daemon"], user.variables())
    return user


@pytest.fixture(scope="module")
def checkout(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    """A copy of the environment of `make setup`: llmd is installed from its sources, editable."""
    user = User(new_environment("llmd-daemon"), wheelhouse)
    prefix = user.environment.prefix
    user.environment.uv("uninstall", "llmd-daemon")
    for file in metadata.distribution("llmd-daemon").files or ():
        path = Path(os.path.normpath(str(file.locate())))
        target = prefix / path.relative_to(sys.prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text().replace(sys.prefix, str(prefix)))
        target.chmod(path.stat().st_mode)
    return user


KEEPING = {"uv_tool": "uv tool install", "pipx": "pipx inject", "checkout": "make setup"}
"""How each keeps a plugin over an upgrade of llmd."""


@pytest.fixture(scope="module", params=KEEPING)
def tool(request: pytest.FixtureRequest) -> tuple[User, str]:
    """A user whose llmd was installed by one of these, and what its notes name."""
    user = request.getfixturevalue(request.param)
    assert isinstance(user, User)
    return user, KEEPING[request.param]


@pytest.fixture
def user(tool: tuple[User, str], index: Path) -> Iterator[User]:
    """That user; `pip freeze` prints the same after each test."""
    before = tool[0].freeze()
    yield replace(tool[0], index=index)
    assert tool[0].freeze() == before


@pytest.mark.parametrize("source", ["index", "path", "wheel"])
def test_installs_from_each_source_and_uninstalls(
    user: User, tool: tuple[User, str], index: Path, tmp_path: Path, source: str
) -> None:
    targets = {
        "index": "llmd-command-made",
        "path": str(tmp_path / "project"),
        "wheel": str(make_plugin(index, "llmd-command-made", "0.1.0", name="made")),
    }
    frozen = "==0.1.0" if source == "index" else f" @ file://{targets[source]}"
    user.llmd("plugins", "new", "command", "made", "--path", targets["path"])
    done = user.llmd("plugins", "install", targets[source])
    assert done.returncode == 0, done.stderr
    assert "✓ made (llmd-command-made 0.1.0): command made" in done.stdout
    assert tool[1] in done.stderr
    assert f"llmd-command-made{frozen}" in user.freeze()
    assert user.llmd("plugins", "uninstall", "made").returncode == 0


def test_a_failing_probe_a_conflict_and_a_kill_leave_the_old_state(user: User, index: Path) -> None:
    before = user.freeze()
    make_plugin(index, "made-plugin", "1.0", source=CRASHES)
    assert "its probe failed: it crashed" in user.llmd("plugins", "install", "made-plugin").stderr
    assert user.freeze() == before

    make_plugin(index, "made-plugin", "2.0")
    assert user.llmd("plugins", "install", "made-plugin").returncode == 0
    installed = user.freeze()
    make_plugin(index, "made-plugin", "3.0", source=CRASHES)
    assert user.llmd("plugins", "install", "made-plugin", "--upgrade").returncode == 1
    assert user.freeze() == installed

    wheel = make_plugin(index, "made-other", requires=["click<1"])
    done = user.llmd("plugins", "install", str(wheel))
    assert "it needs click<1, but llmd runs with click" in done.stderr
    assert user.freeze() == installed

    wheel = make_plugin(index, "made-plugin", "4.0", source=HANGS_IN_PLACE)
    with begun(user, "plugins", "install", str(wheel)) as running:
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert user.freeze() != installed
        assert "was interrupted while" in user.llmd("plugins", "list").stderr
    assert user.freeze() == installed
    assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0


def test_an_upgrade_by_uv_removes_the_plugin_and_llmd_says_so(uv_tool: User, index: Path) -> None:
    make_plugin(index, "made-plugin")
    uv_tool = replace(uv_tool, index=index)
    installed = uv_tool.llmd("plugins", "install", "made-plugin")
    command = installed.stderr.partition("run: ")[2].split()
    run([str(UV), "tool", "upgrade", "llmd-daemon"], uv_variables(uv_tool))
    assert "made-plugin==1.0" not in uv_tool.freeze()
    (row,) = [one for one in uv_tool.json("plugins", "list")["plugins"] if one["state"] == "missing"]
    assert (row["name"], "llmd plugins install made-plugin" in row["fix"]) == ("made-plugin", True)

    assert uv_tool.llmd("plugins", "install", "made-plugin").returncode == 0
    assert command == ["uv", "tool", "install", "llmd-daemon", "--with", "made-plugin"]
    run([str(UV), *command[1:], "--python", sys.executable], uv_variables(uv_tool))
    run([str(UV), "tool", "upgrade", "llmd-daemon"], uv_variables(uv_tool))
    assert "made-plugin==1.0" in uv_tool.freeze()
    removed = uv_tool.llmd("plugins", "uninstall", "made-plugin")
    command = removed.stderr.partition("run: ")[2].split()
    assert command == ["uv", "tool", "install", "llmd-daemon"]
    run([str(UV), *command[1:], "--python", sys.executable], uv_variables(uv_tool))
    assert "made-plugin==1.0" not in uv_tool.freeze()


def test_a_plugin_that_pipx_knows_survives_its_reinstallation(pipx: User, index: Path) -> None:
    make_plugin(index, "made-plugin")
    pipx = replace(pipx, index=index)
    installed = pipx.llmd("plugins", "install", "made-plugin")
    command = installed.stderr.partition("run: ")[2].split()
    run(["pipx", "upgrade", "llmd-daemon"], pipx.variables())
    assert "made-plugin==1.0" in pipx.freeze()
    run(command, pipx.variables())
    run(["pipx", "reinstall", "--python", sys.executable, "llmd-daemon"], pipx.variables())
    assert "made-plugin==1.0" in pipx.freeze()
    removed = pipx.llmd("plugins", "uninstall", "made-plugin")
    command = removed.stderr.partition("run: ")[2].split()
    assert command == ["pipx", "uninject", "llmd-daemon", "made-plugin"]


def test_llmd_of_pip_install_user_is_left_alone_and_says_so(
    tmp_path: Path, wheelhouse: Path, index: Path
) -> None:
    """The layout of `pip install --user`, which Debian's pip refuses to make."""
    user = User(Environment(tmp_path / "base"), wheelhouse, index, {"PYTHONUSERBASE": str(tmp_path / "base")})
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    command = [str(UV), "pip", "install", "-q", "--python", str(python), "--prefix", str(tmp_path / "base")]
    run([*command, "--break-system-packages", "llmd-daemon"], user.variables())
    wheel = make_plugin(index, "made-plugin")
    assert user.llmd("plugins", "list").returncode == 0
    done = user.llmd("plugins", "install", str(wheel))
    assert done.returncode == 1
    assert "llmd was installed with `pip install --user`" in done.stderr
    assert "python3 -m venv ~/llmd" in done.stderr
