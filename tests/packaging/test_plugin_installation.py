"""`llmd plugins install` and `uninstall` change an environment as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import UV
from tests.packaging.made_wheels import CRASHES, PLUGIN, make_plugin, make_wheel
from tests.packaging.user import User, snapshot

pytestmark = pytest.mark.packaging

# Works from the folder where it is tried out, but not from the environment.
FAILS_IN_PLACE = PLUGIN.format(command="late") + "assert 'staged' in __file__, 'found in the environment'\n"


def test_installs_from_an_index_upgrades_and_uninstalls(user: User, index: Path) -> None:
    before = user.freeze()
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
    assert set(user.freeze()) - set(before) == {"made-toolkit==1.0"}, "it may serve others"
    user.environment.uv("uninstall", "made-toolkit")


def test_an_upgrade_whose_probe_fails_is_rolled_back_with_its_dependencies(user: User, index: Path) -> None:
    make_wheel(index, "made-toolkit", "1.0", files={"made_toolkit.py": "VERSION = 1\n"})
    make_plugin(index, "made-plugin", "1.0", requires=["made-toolkit"])
    assert user.llmd("plugins", "install", "made-plugin").returncode == 0
    files, names = snapshot(user.environment.prefix), user.freeze()

    make_wheel(index, "made-toolkit", "2.0", files={"made_toolkit.py": "VERSION = 2\n", "made_more.py": ""})
    make_plugin(index, "made-plugin", "2.0", source=CRASHES, requires=["made-toolkit>=2"])
    done = user.llmd("plugins", "install", "made-plugin", "--upgrade")
    assert done.returncode == 1
    assert done.stdout == "", "nothing has changed"
    assert "was not installed: its probe failed: it crashed with SIGABRT" in done.stderr
    assert "nothing was changed" in done.stderr
    assert (snapshot(user.environment.prefix), user.freeze()) == (files, names)

    make_plugin(index, "made-plugin", "3.0", source=FAILS_IN_PLACE, requires=["made-toolkit>=2"])
    done = user.llmd("plugins", "install", "made-plugin", "--upgrade")
    assert "found in the environment" in done.stderr
    assert (snapshot(user.environment.prefix), user.freeze()) == (files, names)
    assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0
    user.environment.uv("uninstall", "made-toolkit")


def test_what_would_change_the_core_is_refused_in_words(user: User, index: Path) -> None:
    wheel = make_plugin(index, "made-plugin", requires=["click<1"])
    done = user.llmd("plugins", "install", str(wheel))
    assert done.returncode == 1
    assert "made-plugin 1.0 cannot be installed: it needs click<1, but llmd runs with click" in done.stderr
    assert "nothing was changed" in done.stderr

    own = make_plugin(index, "llmd-daemon", "9.0", name="thief")
    assert "is part of llmd" in user.llmd("plugins", "install", str(own)).stderr

    wheel = make_wheel(
        index,
        "made-thief",
        files={"llmd/cli/main.py": "", "made_thief.py": ""},
        plugins=["made-thief = made_thief"],
    )
    done = user.llmd("plugins", "install", str(wheel))
    assert "would overwrite" in done.stderr
    assert "main.py, which belongs to llmd-daemon" in done.stderr


def test_a_broken_wheel_is_to_be_repaired_where_it_is_from(user: User, index: Path) -> None:
    wheel = make_plugin(index, "made-plugin")
    assert user.llmd("plugins", "install", str(wheel)).returncode == 0
    (module,) = user.environment.prefix.rglob("made_plugin.py")
    module.write_text("raise RuntimeError('edited')\n")
    user.llmd("doctor", "plugins")
    (state,) = (one for one in user.json("plugins", "list")["plugins"] if one["name"] == "made-plugin")
    fix = f"repair it and run `llmd plugins install {wheel}`, or run `llmd plugins uninstall made-plugin`"
    assert (state["state"], state["fix"]) == ("failed", fix)
    assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0


def test_the_indexes_of_uv_are_used(user: User, index: Path) -> None:
    make_plugin(index, "made-plugin")
    links = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": index.as_uri()}
    done = user.llmd("plugins", "install", "made-plugin", "--dry-run", only=links)
    assert done.stdout == "+ made-plugin 1.0\n"
    assert UV.exists()
