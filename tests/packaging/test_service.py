"""The service starts the llmd of the environment that installs it, whatever made the environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.environments import UV, Environment

pytestmark = pytest.mark.packaging


def exec_start(printed: str) -> str:
    (line,) = (line for line in printed.splitlines() if line.startswith("ExecStart="))
    return line.removeprefix("ExecStart=").split()[0]


def test_a_virtual_environment_starts_its_own_script(installed: Environment) -> None:
    printed = installed.run("llmd", "service", "install", "--print")
    assert exec_start(printed) == str(installed.prefix / "bin" / "llmd")


def test_a_tool_of_uv_starts_the_script_in_its_environment(
    installed: Environment, wheelhouse: Path, tmp_path: Path
) -> None:
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    variables = {**installed.variables(), **folders, "UV_CACHE_DIR": str(tmp_path / "cache")}
    command = [str(UV), "tool", "install", "--python", str(installed.prefix / "bin" / "python"), "--no-index"]
    command += ["--find-links", str(wheelhouse), "llmd-daemon"]
    subprocess.run(command, env=variables, check=True, capture_output=True)
    link = tmp_path / "bin" / "llmd"
    done = subprocess.run(
        [link, "service", "install", "--print"], env=variables, check=True, capture_output=True, text=True
    )
    assert exec_start(done.stdout) == str(tmp_path / "tools" / "llmd-daemon" / "bin" / "llmd")
