"""Plugins of outsiders, built and installed as their users do it, in environments of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.environments import EnvironmentFactory
from tests.packaging.user import User
from tests.plugin_sites import EXAMPLE, TRIALS

pytestmark = [pytest.mark.packaging, pytest.mark.exhaustive]

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-backend.md"


def test_each_broken_plugin_is_told_with_its_reason_and_the_good_one_works(
    new_environment: EnvironmentFactory, wheelhouse: Path, tmp_path: Path
) -> None:
    user = User(new_environment("llmd-daemon"), wheelhouse)
    projects = [EXAMPLE, *sorted(TRIALS.iterdir())]
    user.environment.install(wheelhouse, "hatchling")
    build = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path))
    user.environment.pip("wheel", wheelhouse, *build, *map(str, projects))
    user.environment.install(wheelhouse, *map(str, tmp_path.glob("*.whl")))

    unknown = {plugin["name"]: plugin["state"] for plugin in user.json("plugins", "list")["plugins"]}
    assert set(unknown.values()) == {"unknown"}
    assert {"example", "raises", "segfaults", "hangs", "other", "twin-one", "twin-two", "reference"} <= set(
        unknown
    )

    checks = {check["id"]: check for check in user.json("doctor", code=8)["checks"]}
    states = {plugin["name"]: plugin for plugin in user.json("plugins", "list")["plugins"]}
    expected = {
        "raises": "the toolkit was built for another driver",
        "segfaults": "SIGSEGV (Segmentation fault)",
        "hangs": "did not finish within 6 s",
        "other": "trial-other-contract 3.1 is built for plugin contract 99, but this llmd has 2",
        "twin-two": "trial-twin-two 1.0 claims the backend 'twin', which trial-twin-one 1.0 already provides",
    }
    for name, reason in expected.items():
        assert states[name]["state"] == "failed"
        assert reason in states[name]["reason"]
        assert states[name]["fix"]
        assert reason in checks[f"plugin:{name}"]["seen"]
    assert {name for name, state in states.items() if state["state"] == "failed"} == set(expected)

    devices = {device["name"]: device for device in user.json("devices")["devices"]}
    assert devices["example"]["state"] == devices["reference"]["state"] == "ok"
    assert devices["example"]["read_bytes_per_s"] > 0
    assert_serves_meanwhile(user)


def assert_serves_meanwhile(user: User) -> None:
    """A daemon among broken plugins answers on the device that `auto` finds,
    and refuses one that cannot be used.
    """
    host = ("--host", f"unix:{user.environment.prefix / 'llmd.sock'}")
    started = user.llmd("serve", "guide", "--detach", "--addr", host[1])
    assert started.returncode == 0, started.stderr
    try:
        answered = user.llmd("run", "guide", "How do I see my devices?", "--temp", "0", "-n", "8", *host)
        assert answered.returncode == 0, answered.stderr
        assert answered.stdout.strip()
    finally:
        assert user.llmd("stop", "--daemon", *host).returncode == 0
    refused = user.llmd("serve", "guide", "--device", "segfaults", "--addr", host[1])
    assert refused.returncode != 0
    assert "SIGSEGV" in refused.stderr


def test_a_newcomer_follows_the_page_on_backends_from_its_first_line(
    new_environment: EnvironmentFactory, wheelhouse: Path, tmp_path: Path
) -> None:
    user = User(new_environment("llmd-daemon"), wheelhouse)
    commands = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    script = "\n".join(("set -e", f"export LLMD_ADDR=unix:{tmp_path}/socket", *commands))
    done = user.shell(script, tmp_path)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    ((passed, of_all),) = re.findall(r"^mine: (\d+) of (\d+) passed", done.stdout, re.MULTILINE)
    assert passed == of_all
