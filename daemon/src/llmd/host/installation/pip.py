"""Runs this environment's pip. llmd depends on it, so it is there even if uv or pipx made the environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import PluginError
from llmd.host.installation.own import how_to_restore, own_distribution
from llmd.host.names import canonical, project_of

UNCHANGED = "nothing was changed"
# They would send files elsewhere than to the folder that this module names.
REDIRECTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")
# Settings of uv, for users who configured only that one. uv allows NAME=URL, and commas between folders.
FROM_UV = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX_URL": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_NO_INDEX": "PIP_NO_INDEX",
    "UV_OFFLINE": "PIP_NO_INDEX",
}
DEPENDS = re.compile(r"^ *(\S+ \S+) depends on (.+?)\s*$", re.MULTILINE)
KEPT = re.compile(r"\(constraint\) ([A-Za-z0-9._-]+)==(\S+)")
ABSENT = re.compile(r"No matching distribution found for (\S+)")
FAULT = re.compile(r"^ *(?:ERROR|error): (.+)$", re.MULTILINE)


class Resolved(msgspec.Struct, frozen=True):
    """A distribution that pip would install."""

    name: str
    version: str


class Pip:
    """pip as a child process of this Python. ``environ`` are the variables of this process."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._variables = pip_variables(environ)

    def build(self, source: str, wheels: Path) -> Path:
        """Build or fetch the wheel of a path or URL; return the wheel.

        Raises:
            PluginError: it cannot be built.
        """
        if source.endswith(".whl") and Path(source).is_file():
            return Path(shutil.copy(source, wheels))
        before = set(wheels.glob("*.whl"))
        self._run("wheel", "--no-deps", "--wheel-dir", str(wheels), source)
        (wheel,) = set(wheels.glob("*.whl")) - before
        return wheel

    def resolve(self, requirement: str, constraints: Path, *, upgrade: bool) -> list[Resolved]:
        """Return what pip would install. Nothing is changed.

        Raises:
            PluginError: the requirement cannot be met without changing the versions in ``constraints``.
        """
        report = constraints.with_name("report.json")
        options = ["--dry-run", "--report", str(report), "--constraint", str(constraints)]
        self._run("install", *options, *(["--upgrade"] if upgrade else []), requirement)
        items: list[dict[str, Any]] = json.loads(report.read_text())["install"]
        return [Resolved(canonical(one["metadata"]["name"]), one["metadata"]["version"]) for one in items]

    def fetch(self, resolved: Sequence[Resolved], wheels: Path) -> None:
        """Put the wheels of these distributions into a folder.

        Raises:
            PluginError: one cannot be fetched or built.
        """
        if resolved:
            self._run("wheel", "--no-deps", "--wheel-dir", str(wheels), *_pinned(resolved))

    def unpack(self, resolved: Sequence[Resolved], prefix: Path, wheels: Path | None) -> None:
        """Install distributions below another prefix, laid out as in this environment: those in the folder
        ``wheels``, or if it is None those that `resolve` found.

        Raises:
            PluginError: one cannot be fetched or built, or is damaged.
        """
        from_wheels = ("--isolated", "--no-index", "--find-links", str(wheels)) if wheels else ()
        options = ("--no-deps", "--ignore-installed", "--prefix", str(prefix))
        self._run("install", *from_wheels, *options, *_pinned(resolved))

    def faults(self, extra: Sequence[Path] = ()) -> set[str]:
        """Return the unmet requirements of installed distributions, those in ``extra`` folders first."""
        path = os.pathsep.join(map(str, extra))
        done = self._start(["check"], {"PYTHONPATH": path} if path else {})
        return {
            line for line in done.stdout.splitlines() if " has requirement " in line or " requires " in line
        }

    def _run(self, *arguments: str) -> None:
        done = self._start(arguments, {})
        if done.returncode < 0:
            raise PluginError(
                f"pip was ended by {signal.Signals(-done.returncode).name}",
                hint=f"{UNCHANGED}; if nobody ended it, the machine may have too little memory",
            )
        if done.returncode:
            raise failure(done.stdout, done.stderr)

    def _start(
        self, arguments: Iterable[str], variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**self._variables, **variables},
        )  # fmt: skip


def pip_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for pip: the indexes of uv count where pip has no setting of its own."""
    variables = {name: value for name, value in environ.items() if name not in REDIRECTING}
    for theirs, ours in FROM_UV.items():
        if environ.get(theirs):
            value = re.sub(r"^\w[\w-]*=(?=\w+://)", "", environ[theirs])
            variables.setdefault(ours, value.replace(",", " "))
    return variables


def failure(stdout: str, stderr: str) -> PluginError:
    """Return the error of a pip that failed: a conflict with llmd in words, else what pip printed."""
    kept = dict(KEPT.findall(stdout))
    found = dict.fromkeys(DEPENDS.findall(stdout))
    for dependent, wanted in found:
        name = project_of(wanted)
        if name in kept:  # pip does not say which of several requirements is not met
            every = [other for one, other in found if one == dependent and project_of(other) == name]
            return _conflict(dependent, " and ".join(every), f"{name} {kept[name]}")
    if absent := ABSENT.search(stderr):
        return _absent(absent[1])
    faults = FAULT.findall(stderr)
    shown = "\n".join(faults[-2:]) if faults else (stdout + stderr).strip()
    return PluginError(f"the plugin cannot be installed: {shown}", hint=UNCHANGED)


def _absent(name: str) -> PluginError:
    if own := own_distribution(project_of(name)):
        fix = f"{own} is a part of llmd, which is in no package index; {how_to_restore(own)}"
    elif Path(name).is_dir():
        fix = f"to install the folder of that name, write ./{name}"
    else:
        fix = "check the name, or run `llmd plugins search` for known plugins"
    return PluginError(f"no package index has {name} for this Python", hint=f"{UNCHANGED}; {fix}")


def _conflict(dependent: str, wanted: str, installed: str) -> PluginError:
    return PluginError(
        f"{dependent} cannot be installed: it needs {wanted}, but llmd runs with {installed}",
        hint=f"{UNCHANGED}; a plugin may not replace llmd or what llmd depends on."
        f" Look for a version of {dependent.partition(' ')[0]} that works with {installed}",
    )


def _pinned(resolved: Sequence[Resolved]) -> list[str]:
    return [f"{one.name}=={one.version}" for one in resolved]
