"""The versions that a plugin must not change: those of llmd and of everything that it depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from llmd.host.names import CORE_DISTRIBUTION

PROJECT = re.compile(r"[A-Za-z0-9._-]+")


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


def write_constraints(versions: Mapping[str, str], path: Path) -> None:
    """Write a constraints file of pip that keeps these versions."""
    path.write_text("".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
