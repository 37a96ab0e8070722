"""Throw-away environments that install from the wheelhouse with no index, as users without a network do.

Tests that use these fixtures are marked ``packaging``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.release.installation_check import OURS

ROOT = Path(__file__).parents[1]
PIP = ROOT / ".tools" / "bin" / "pip"
UV = ROOT / ".tools" / "bin" / "uv"
UV_CACHE = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv")
"""Outside of the environments, so that a wheel is unpacked once."""


@dataclass(frozen=True)
class Environment:
    """An environment of its own, which nothing of the workspace reaches."""

    prefix: Path

    def run(self, program: str, *arguments: str) -> str:
        """What a program of the environment prints;
        fails with its errors where it ends with another status than 0.
        """
        return self._run(self.prefix / "bin" / program, *arguments)

    def _run(self, program: Path, *arguments: str) -> str:
        command = [str(program), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=self.variables())
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def variables(self) -> dict[str, str]:
        """Environment variables that point at a home of its own, without settings of Python, pip or llmd."""
        kept = {name: value for name, value in os.environ.items() if name in {"LANG", "TMPDIR"}}
        return kept | {"HOME": str(self.prefix), "PATH": f"{self.prefix / 'bin'}:/usr/bin:/bin"}

    def install(self, wheelhouse: Path, *requirements: str) -> None:
        """Install from the wheelhouse alone, with uv, which is ten times as fast as pip."""
        ours = (f"--refresh-package={name}" for name in OURS)  # uv's cache keeps wheels by version alone
        self.uv("install", *ours, "--no-index", "--find-links", str(wheelhouse), *requirements)

    def uv(self, command: str, *arguments: str) -> str:
        """Run a command of `uv pip` on this environment."""
        python = ("--python", str(self.prefix / "bin" / "python"))
        return self._run(UV, "--cache-dir", str(UV_CACHE), "pip", command, "-q", *python, *arguments)

    def pip(self, command: str, wheelhouse: Path, *arguments: str) -> None:
        """Run a command of pip that sees the wheelhouse and no index."""
        python = ("--python", str(self.prefix / "bin" / "python"))
        links = ("--no-index", "--find-links", str(wheelhouse))
        self._run(PIP, *python, "--isolated", command, "-qq", *links, *arguments)


EnvironmentFactory = Callable[..., Environment]


@pytest.fixture(scope="session")
def wheelhouse() -> Path:
    """The folder that ``make setup`` fills with wheels."""
    folder = ROOT / "wheelhouse"
    assert list(folder.glob("llmd_daemon-*.whl")), "run `make setup` first"
    return folder


@pytest.fixture(scope="session")
def new_environment(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> EnvironmentFactory:
    """Makes an environment that holds what its arguments require and no pip of its own, as uv makes them;
    tests may change it.
    """

    def make(*requirements: str) -> Environment:
        environment = Environment(tmp_path_factory.mktemp("environment"))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment.prefix)], check=True)
        if requirements:
            environment.install(wheelhouse, *requirements)
        return environment

    return make


@pytest.fixture(scope="session")
def installed(new_environment: EnvironmentFactory) -> Environment:
    """The distributions that ``make setup`` installs; tests must not change it."""
    return new_environment("llmd-daemon", "llmd-backend-cpu", "llmd-transport", "llmd-tui")


@pytest.fixture(scope="session")
def daemon_alone(new_environment: EnvironmentFactory) -> Environment:
    """The daemon without any plugin; tests must not change it."""
    return new_environment("llmd-daemon")
