"""What must hold before a release: one version everywhere, a changelog entry, and nothing uncommitted."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from tools.wheelhouse import DISTRIBUTIONS


class ReleaseError(Exception):
    """A release cannot be made; the message says why and what to do."""


def checked_version(root: Path) -> str:
    """Return the version to release.

    Raises:
        ReleaseError: the working tree has changes, versions differ, or the changelog lacks an entry.
    """
    if changes := uncommitted(root):
        raise ReleaseError(f"there are uncommitted changes; commit or remove them:\n{changes}")
    version = common_version(versions(root))
    if not has_entry((root / "CHANGELOG.md").read_text(), version):
        raise ReleaseError(
            f"CHANGELOG.md has no entry for {version}: rename its section `[Unreleased]` to\n"
            f"`[{version}] - YEAR-MONTH-DAY`, or raise the version in {', '.join(versions(root))}"
        )
    return version


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file states, by its path relative to ``root``."""
    found = {}
    for name in DISTRIBUTIONS:
        project = Path(name) / "pyproject.toml"
        found[str(project)] = str(tomllib.loads((root / project).read_text())["project"]["version"])
    library = Path("bindings") / "c" / "Makefile"
    (found[str(library)],) = re.findall(r"^VERSION := (.+)$", (root / library).read_text(), re.MULTILINE)
    return found


def common_version(found: dict[str, str]) -> str:
    """Return the version if all files state the same one.

    Raises:
        ReleaseError: they differ.
    """
    if len(set(found.values())) != 1:
        listed = "\n".join(f"  {version}  {file}" for file, version in found.items())
        raise ReleaseError(f"versions differ; give all files the same one:\n{listed}")
    return next(iter(found.values()))


def has_entry(changelog: str, version: str) -> bool:
    """Whether a changelog has a dated section for a version."""
    return bool(re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE))


def uncommitted(root: Path) -> str:
    """Return git's list of changed and untracked files; empty if the tree is clean."""
    return _git(root, "status", "--porcelain").rstrip()


def commit_time(root: Path) -> str:
    """Return the time of the released commit, in seconds since 1970."""
    return _git(root, "log", "-1", "--format=%ct").strip()


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, cwd=root, capture_output=True, text=True).stdout
