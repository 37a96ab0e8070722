"""What ``llmd plugins install`` may be given: a name, a path, or a URL."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from llmd.api.errors import ConfigError
from llmd.host.names import canonical, project_of

REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?\s*([=<>!~]=?=?\s*[^;@\s]+)?\Z")
URL = re.compile(r"(https?|file|git\+(https?|ssh|file))://[^\s;]+\Z")


class Target(msgspec.Struct, frozen=True):
    """A distribution to install."""

    requirement: str
    """As pip takes it: a name with an optional version, an absolute path, or a URL."""
    is_file: bool
    """Whether it is a path or a URL: that exact one is installed, even if its version already is."""

    @property
    def name(self) -> str:
        """The canonical name of the distribution; empty for a path or URL."""
        return "" if self.is_file else canonical(project_of(self.requirement))


def read_target(text: str) -> Target:
    """Return what the user named. An existing path becomes absolute.

    Raises:
        ConfigError: it is neither a path nor a URL nor a name.
    """
    if (path := existing_path(text)) is not None:
        return Target(str(path.resolve()), is_file=True)
    if URL.match(text):
        return Target(text, is_file=True)
    if REQUIREMENT.match(text):
        return Target(text, is_file=False)
    raise ConfigError(
        f"{text!r} is neither an existing path, nor a URL, nor the name of a distribution",
        hint="name a wheel, a source folder, a URL, or a distribution on the package index such as NAME==1.2",
    )


def existing_path(text: str) -> Path | None:
    """Return the folder or file that a text names; None if it is a name, or nothing is there."""
    path = Path(text).expanduser()
    looks_like_path = "/" in text or text.startswith((".", "~")) or path.suffix == ".whl"
    return path if looks_like_path and path.exists() else None
