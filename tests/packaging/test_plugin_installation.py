"""`llmd plugins install` and `uninstall` change an environment as a whole or not at all."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.environments import UV, EnvironmentFactory
from tests.packaging.made_wheels import CRASHES, PLUGIN, make_plugin, make_wheel
from tests.packaging.user import User

pytestmark = pytest.mark.packaging

# Works from the folder where it is tried out, but not from the environment.
FAILS_IN_PLACE = PLUGIN.format(command="late") + "assert 'staged' in __file__, 'found in the environment'\n"
HANGS_IN_PLACE = (
    PLUGIN.format(command="late")
    + """
import pathlib, time
if "staged" not in __file__:
    pathlib.Path.home().joinpath("installed").touch()
    time.sleep(600)
"""
)


def snapshot(prefix: Path) -> dict[str, tuple[int, int, int]]:
    """Return mode, size and time of all files of an environment except bytecode and the user's own."""
    files = (path for part in ("bin", "lib") for path in (prefix / part).rglob("*") if path.is_file())
    stats = {path: path.stat() for path in files if path.suffix != ".pyc"}
    return {
        str(path.relative_to(prefix)): (stat.st_mode, stat.st_size, stat.st_mtime_ns)
        for path, stat in stats.items()
    }


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels in place of a package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def shared(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    return User(new_environment("llmd-daemon"), wheelhouse)


@pytest.fixture
def user(shared: User, index: Path) -> Iterator[User]:
    """A user whose environment is unchanged after each test."""
    before = snapshot(shared.environment.prefix)
    yield replace(shared, index=index)
    assert snapshot(shared.environment.prefix) == before


def freeze(user: User) -> list[str]:
    """Return what `pip freeze` prints."""
    return user.environment.uv("freeze").splitlines()


def test_installs_from_an_index_upgrades_and_uninstalls(user: User, index: Path) -> None:
    before = freeze(user)
    make_wheel(index, "made-toolkit", "1.0", files={"made_toolkit.py": "VERSION = 1\n"})
    make_plugin(index, "made-plugin", "1.0", requires=["made-toolkit"], scripts=["made = made_plugin:main"])
    installed = user.json("plugins", "install", "made-plugin")
    assert installed["changes"] == [
        {"distribution": "made-plugin", "before": "", "after": "1.0"},
        {"distribution": "made-toolkit", "before": "", "after": "1.0"},
    ]
    (plugin,) = installed["plugins"]
    assert (plugin["name"], plugin["probe"]["summary"]["provides"]) == (
        "made-plugin",
        {"command": ["made-plugin"]},
    )
    assert (user.environment.prefix / "bin" / "made").exists()
    states = {state["name"]: state["state"] for state in user.json("plugins", "list")["plugins"]}
    assert states["made-plugin"] == "ok"

    make_plugin(index, "made-plugin", "2.0", requires=["made-toolkit"])
    assert "nothing to change" in user.llmd("plugins", "install", "made-plugin").stdout
    done = user.llmd("plugins", "install", "made-plugin", "--upgrade")
    assert done.stdout.splitlines() == [
        "~ made-plugin 1.0 → 2.0",
        "✓ made-plugin (made-plugin 2.0): command made-plugin",
    ]
    assert not (user.environment.prefix / "bin" / "made").exists()

    assert user.json("plugins", "uninstall", "made-plugin")["changes"] == [
        {"distribution": "made-plugin", "before": "2.0", "after": ""}
    ]
    assert set(freeze(user)) - set(before) == {"made-toolkit==1.0"}, "it may serve others"
    user.environment.uv("uninstall", "made-toolkit")


def test_an_upgrade_whose_probe_fails_is_rolled_back_with_its_dependencies(user: User, index: Path) -> None:
    make_wheel(index, "made-toolkit", "1.0", files={"made_toolkit.py": "VERSION = 1\n"})
    make_plugin(index, "made-plugin", "1.0", requires=["made-toolkit"])
    assert user.llmd("plugins", "install", "made-plugin").returncode == 0
    files, names = snapshot(user.environment.prefix), freeze(user)

    make_wheel(index, "made-toolkit", "2.0", files={"made_toolkit.py": "VERSION = 2\n", "made_more.py": ""})
    make_plugin(index, "made-plugin", "2.0", source=CRASHES, requires=["made-toolkit>=2"])
    done = user.llmd("plugins", "install", "made-plugin", "--upgrade")
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["~ made-plugin 1.0 → 2.0", "~ made-toolkit 1.0 → 2.0"]
    assert "was not installed: its probe failed: it crashed with SIGABRT" in done.stderr
    assert "nothing was changed" in done.stderr
    assert (snapshot(user.environment.prefix), freeze(user)) == (files, names)

    make_plugin(index, "made-plugin", "3.0", source=FAILS_IN_PLACE, requires=["made-toolkit>=2"])
    done = user.llmd("plugins", "install", "made-plugin", "--upgrade")
    assert "found in the environment" in done.stderr
    assert (snapshot(user.environment.prefix), freeze(user)) == (files, names)
    assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0
    user.environment.uv("uninstall", "made-toolkit")


def test_what_would_change_the_core_is_refused_in_words(user: User, index: Path) -> None:
    wheel = make_plugin(index, "made-plugin", requires=["click<1"])
    done = user.llmd("plugins", "install", str(wheel))
    assert done.returncode == 1
    assert "made-plugin 1.0 cannot be installed: it needs click<1, but llmd runs with click" in done.stderr
    assert "nothing was changed" in done.stderr

    wheel = make_wheel(
        index, "made-thief", files={"llmd/cli/main.py": "", "made_thief.py": ""}, plugin="made_thief"
    )
    done = user.llmd("plugins", "install", str(wheel))
    assert "would overwrite" in done.stderr
    assert "main.py, which belongs to llmd-daemon" in done.stderr


def test_a_killed_installation_is_undone_by_the_next_command(user: User, index: Path) -> None:
    before = freeze(user)
    wheel = make_plugin(index, "made-plugin", source=HANGS_IN_PLACE)
    command = [str(user.environment.prefix / "bin" / "llmd"), "plugins", "install", str(wheel)]
    installed = user.environment.prefix / "installed"
    with subprocess.Popen(command, env=user.variables(), stdout=subprocess.DEVNULL) as running:
        while not installed.exists():
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    assert "made-plugin==1.0" in freeze(user), "it was killed in the middle"
    done = user.llmd("plugins", "list")
    assert done.stderr == (
        "llmd: an earlier command was interrupted while installing made-plugin 1.0;"
        " the environment is as before that\n"
    )
    assert "made-plugin" not in done.stdout
    assert freeze(user) == before


def test_the_indexes_of_uv_are_used(user: User, index: Path) -> None:
    make_plugin(index, "made-plugin")
    links = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": index.as_uri()}
    done = user.llmd("plugins", "install", "made-plugin", "--dry-run", only=links)
    assert done.stdout == "+ made-plugin 1.0\n"
    assert UV.exists()
