"""Plugins of outsiders, built and installed as their users do it, in environments of their own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.environments import Environment, EnvironmentFactory
from tests.plugin_sites import EXAMPLE, TRIALS

pytestmark = pytest.mark.packaging

TOOLS = Path(__file__).parents[2] / ".tools" / "bin"
PAGE = Path(__file__).parents[2] / "docs" / "adding-a-backend.md"
NEEDS_ANOTHER_CORE = """
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "trial-needs-another-core"
version = "1.0"
dependencies = ["click<1"]

[tool.hatch.build.targets.wheel]
bypass-selection = true
"""


@dataclass(frozen=True)
class User:
    """Someone who types commands in an environment, with the wheelhouse in place of an index."""

    environment: Environment
    wheelhouse: Path
    path: str = ""

    def llmd(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.environment.prefix / "bin" / "llmd"), *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=self.variables())

    def shell(self, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run commands in a folder, the environment active."""
        return subprocess.run(
            ["bash", "-c", script],
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            env=self.variables(),
        )

    def variables(self) -> dict[str, str]:
        """Those of the environment, with the wheelhouse for pip and uv."""
        variables = self.environment.variables()
        links = self.wheelhouse.as_uri()  # pip would cut a path with a space in two
        wheels = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": links}
        wheels |= {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": links}
        variables["PATH"] = f"{self.path}:{variables['PATH']}"
        return variables | wheels

    def json(self, *arguments: str, code: int = 0) -> Any:
        done = self.llmd(*arguments, "--json")
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def user(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    return User(new_environment("llmd-daemon"), wheelhouse)


@pytest.fixture(scope="module")
def uv_user(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    """A user who has uv."""
    assert (TOOLS / "uv").exists(), "run `make setup` first"
    return User(new_environment("llmd-daemon"), wheelhouse, path=str(TOOLS))


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


@pytest.mark.parametrize("who", ["user", "uv_user"])
def test_installs_a_plugin_from_its_folder_and_finds_its_device(
    request: pytest.FixtureRequest, who: str
) -> None:
    user: User = request.getfixturevalue(who)
    (change,) = user.json("plugins", "install", str(EXAMPLE), "--dry-run")["changes"]
    assert (change["distribution"], change["before"]) == ("llmd-backend-example", "")
    assert change["after"] in {"0.1.0", EXAMPLE.as_uri()}
    assert "example" not in user.llmd("plugins", "list").stdout

    document = user.json("plugins", "install", str(EXAMPLE))
    assert document["changes"] == [change]
    (plugin,) = document["plugins"]
    (device,) = plugin["probe"]["devices"]
    assert (plugin["name"], device["info"]["name"], device["ok"]) == ("example", "example", True)
    states = {plugin["name"]: plugin["state"] for plugin in user.json("plugins", "list")["plugins"]}
    assert states["example"] == "ok"


def test_a_newcomer_follows_the_page_on_backends_from_its_first_line(
    new_environment: EnvironmentFactory, wheelhouse: Path, tmp_path: Path
) -> None:
    user = User(new_environment("llmd-daemon"), wheelhouse)
    (tmp_path / "llmd" / "examples").mkdir(parents=True)
    shutil.copytree(EXAMPLE, tmp_path / "llmd" / "examples" / EXAMPLE.name)
    commands = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    script = "\n".join(("set -e", f"export LLMD_ADDR=unix:{tmp_path}/socket", *commands))
    done = user.shell(script, tmp_path / "llmd")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    ((passed, of_all),) = re.findall(r"^example: (\d+) of (\d+) passed", done.stdout, re.MULTILINE)
    assert passed == of_all


@pytest.mark.parametrize("who", ["user", "uv_user"])
def test_a_plugin_whose_probe_fails_is_reported(request: pytest.FixtureRequest, who: str) -> None:
    user: User = request.getfixturevalue(who)
    done = user.llmd("plugins", "install", str(TRIALS / "segfaults"))
    assert done.returncode == 1
    assert done.stdout.startswith("+ trial-segfaults ")
    assert "its probe failed: it crashed with SIGSEGV (Segmentation fault)" in done.stderr


@pytest.mark.parametrize("who", ["user", "uv_user"])
def test_a_plugin_that_would_change_the_core_is_refused(
    request: pytest.FixtureRequest, who: str, tmp_path: Path
) -> None:
    user: User = request.getfixturevalue(who)
    (tmp_path / "pyproject.toml").write_text(NEEDS_ANOTHER_CORE)
    before = user.environment.run("pip", "freeze")
    done = user.llmd("plugins", "install", str(tmp_path))
    assert done.returncode == 1
    assert "click" in done.stderr
    assert "nothing was changed" in done.stderr
    assert user.environment.run("pip", "freeze") == before
