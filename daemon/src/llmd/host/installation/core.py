"""The versions that a plugin must not change: those of llmd and of everything that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from llmd.host.installation.distributions import find
from llmd.host.names import CORE_DISTRIBUTION, project_of


def core_versions() -> dict[str, str]:
    """Return the installed versions of llmd and its transitive dependencies."""
    versions: dict[str, str] = {}
    waiting = [CORE_DISTRIBUTION]
    while waiting:
        found = find(waiting.pop())
        # None: required only on other platforms, or by an extra that is not installed.
        if found and found.name not in versions:
            versions[found.name] = found.version
            waiting += filter(None, map(project_of, found.requires or ()))
    return versions


def write_constraints(versions: Mapping[str, str], path: Path) -> None:
    """Write a constraints file of pip that keeps these versions."""
    path.write_text("".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
