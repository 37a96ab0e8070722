"""Installs plugins into llmd's environment, with uv if it is available, else with pip.

The versions of llmd and its dependencies are constraints: a plugin that would change them is refused.
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
    """One distribution that an installation adds, replaces or removes. An empty version means absent."""

    distribution: str
    before: str
    after: str
    """The version, or an address if uv has not built the distribution yet."""


class Tool(Protocol):
    """An installer: uv or pip."""

    def changes(self, target: str, constraints: Path) -> list[Change]:
        """Return what installing the target would change, without changing anything."""
        ...

    def install(self, target: str, constraints: Path) -> None:
        """Install the target."""
        ...


class Uv(msgspec.Struct, frozen=True):
    """The uv executable ``program``."""

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
    """This environment's pip."""

    def changes(self, target: str, constraints: Path) -> list[Change]:
        report = constraints.with_name("report.json")
        _run([*self._command(target, constraints), "--dry-run", "--report", str(report)])
        return list(pip_changes(report.read_text()))

    def install(self, target: str, constraints: Path) -> None:
        _run(self._command(target, constraints))

    def _command(self, target: str, constraints: Path) -> list[str]:
        return [sys.executable, "-m", "pip", "install", "--constraint", str(constraints), target]


def find_tool() -> Tool:
    """Return uv if it is on the PATH, else this environment's pip.

    Raises:
        NotFoundError: neither is available.
    """
    program = shutil.which("uv")
    if program is None and importlib.util.find_spec("pip") is None:
        raise NotFoundError(
            f"neither uv nor pip is available to install into {sys.prefix}",
            hint=f"install uv, or run `{sys.executable} -m ensurepip`",
        )
    return Uv(program) if program else Pip()


def checked_target(target: str) -> str:
    """Return an existing path as absolute, or a distribution name with an optional version unchanged.

    Raises:
        ConfigError: the target is neither.
    """
    path = Path(target)
    if path.exists() and ("/" in target or path.suffix == ".whl"):
        return str(path.resolve())
    if REQUIREMENT.match(target):
        return target
    raise ConfigError(
        f"{target!r} is neither an existing path nor the name of a distribution",
        hint="name a wheel, a source folder, or a distribution on the package index such as NAME==1.2",
    )


@contextmanager
def core_constraints() -> Iterator[Path]:
    """Yield a constraints file with the installed versions of llmd and its dependencies."""
    lines = [f"{name}=={version}" for name, version in sorted(core_versions().items())]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "constraints.txt"
        path.write_text("\n".join(lines) + "\n")
        yield path


def core_versions() -> dict[str, str]:
    """Return the installed versions of llmd and its transitive dependencies."""
    versions: dict[str, str] = {}
    waiting = [CORE_DISTRIBUTION]
    while waiting:
        name = waiting.pop()
        try:
            found = metadata.distribution(name)
        except (
            metadata.PackageNotFoundError
        ):  # required only on other platforms, or by an extra that is not installed
            continue
        if found.name not in versions:
            versions[found.name] = found.version
            waiting += [match[0] for line in found.requires or () if (match := PROJECT.match(line))]
    return versions


def uv_changes(report: str) -> Iterator[Change]:
    """Parse uv's report: ``- name==1`` is removed, ``+ name==2`` added, ``~ name @ file:…`` reinstalled."""
    lines = re.findall(r"^ ([-+~]) ([A-Za-z0-9._-]+)(?:==| @ )(\S+)", report, re.MULTILINE)
    before = {name: version for sign, name, version in lines if sign in "-~"}
    after = {name: version for sign, name, version in lines if sign in "+~"}
    for name in sorted(before | after):
        yield Change(name, before.get(name, ""), after.get(name, ""))


def pip_changes(report: str) -> Iterator[Change]:
    """Parse pip's report of what it would install."""
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
        PluginError: it failed; the message contains its output.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise PluginError(
            f"the plugin cannot be installed:\n{done.stdout}{done.stderr}".rstrip(),
            hint="nothing was changed; the versions of llmd and its dependencies must stay the same",
        )
    return done
