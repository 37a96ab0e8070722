"""Installs plugins into the environment that llmd runs in, with uv where there is one, else with pip.

llmd and everything that it needs are held as constraints: a plugin that would change them is refused.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Protocol

import msgspec

from llmd.api.errors import ConfigError, NotFoundError, PluginError
from llmd.host.names import CORE_DISTRIBUTION

REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?\s*([=<>!~]=?=?\s*[^;@\s]+)?\Z")
PROJECT = re.compile(r"[A-Za-z0-9._-]+")


class Change(msgspec.Struct, frozen=True):
    """One distribution that an installation adds, replaces or removes; empty versions stand for absent.

    ``after`` is an address instead of a version where uv has not built the distribution yet.
    """

    distribution: str
    before: str
    after: str


class Tool(Protocol):
    """What resolves and installs: uv or pip."""

    def changes(self, target: str, constraints: Path) -> list[Change]:
        """What installing the target would change. Nothing is changed."""
        ...

    def install(self, target: str, constraints: Path) -> None:
        """Install the target."""
        ...


class Uv(msgspec.Struct, frozen=True):
    """uv, on the path ``program``."""

    program: str

    def changes(self, target: str, constraints: Path) -> list[Change]:
        return list(uv_changes(_run([*self._command(target, constraints), "--dry-run"]).stderr))

    def install(self, target: str, constraints: Path) -> None:
        _run(self._command(target, constraints))

    def _command(self, target: str, constraints: Path) -> list[str]:
        return [
            self.program,
            "pip",
            "install",
            "--python",
            sys.executable,
            "--constraint",
            str(constraints),
            target,
        ]


class Pip(msgspec.Struct, frozen=True):
    """The pip of this environment."""

    def changes(self, target: str, constraints: Path) -> list[Change]:
        report = constraints.with_name("report.json")
        _run([*self._command(target, constraints), "--dry-run", "--report", str(report)])
        return list(pip_changes(report.read_text()))

    def install(self, target: str, constraints: Path) -> None:
        _run(self._command(target, constraints))

    def _command(self, target: str, constraints: Path) -> list[str]:
        return [sys.executable, "-m", "pip", "install", "--constraint", str(constraints), target]


def find_tool() -> Tool:
    """Uv where it is on the PATH, else the pip of this environment.

    Raises:
        NotFoundError: there is neither.
    """
    program = shutil.which("uv")
    if program is None and importlib.util.find_spec("pip") is None:
        raise NotFoundError(
            f"there is neither uv nor pip to install into {sys.prefix}",
            hint=f"install uv, or run `{sys.executable} -m ensurepip`",
        )
    return Uv(program) if program else Pip()


def checked_target(target: str) -> str:
    """A path made absolute, or a name with an optional version, as a user may give it.

    Raises:
        ConfigError: it is neither.
    """
    path = Path(target)
    if path.exists() and ("/" in target or path.suffix == ".whl"):
        return str(path.resolve())
    if REQUIREMENT.match(target):
        return target
    raise ConfigError(
        f"{target!r} is neither an existing path nor the name of a distribution",
        hint="give the path of a wheel or a source folder, or a name that the package index has, such as NAME==1.2",
    )


@contextmanager
def core_constraints() -> Iterator[Path]:
    """A constraints file with the installed version of llmd and of everything that it needs."""
    lines = [f"{name}=={version}" for name, version in sorted(core_versions().items())]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "constraints.txt"
        path.write_text("\n".join(lines) + "\n")
        yield path


def core_versions() -> dict[str, str]:
    """Installed versions of llmd and, all the way down, of what it requires."""
    versions: dict[str, str] = {}
    waiting = [CORE_DISTRIBUTION]
    while waiting:
        name = waiting.pop()
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # required only elsewhere, or by an extra that is not installed
            continue
        if found.name not in versions:
            versions[found.name] = found.version
            waiting += [match[0] for line in found.requires or () if (match := PROJECT.match(line))]
    return versions


def uv_changes(report: str) -> Iterator[Change]:
    """The changes of uv's report: ``- name==1`` leaves, ``+ name==2`` comes, ``~ name @ file:…`` is installed anew."""
    lines = re.findall(r"^ ([-+~]) ([A-Za-z0-9._-]+)(?:==| @ )(\S+)", report, re.MULTILINE)
    before = {name: version for sign, name, version in lines if sign in "-~"}
    after = {name: version for sign, name, version in lines if sign in "+~"}
    for name in sorted(before | after):
        yield Change(name, before.get(name, ""), after.get(name, ""))


def pip_changes(report: str) -> Iterator[Change]:
    """The changes of pip's report of what it would install."""
    for item in json.loads(report)["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        try:
            before = metadata.version(name)
        except metadata.PackageNotFoundError:
            before = ""
        yield Change(name, before, version)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run uv or pip.

    Raises:
        PluginError: it refused; the message holds its words.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise PluginError(
            f"it cannot be installed:\n{done.stdout}{done.stderr}".rstrip(),
            hint="nothing was changed; llmd and what it needs are held at their versions",
        )
    return done
