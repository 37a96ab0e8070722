"""Makes the project of a new plugin from one of the projects in ``starters``, which are complete plugins.

They are links to llmd's examples; a wheel of llmd has copies. Names with ``example`` get the new name.
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator
from pathlib import Path

from llmd.api.errors import ConfigError, ConflictError

STARTERS = Path(__file__).with_name("starters")
KINDS = ("backend", "architecture", "transport", "dialect", "tool-parser", "reasoning-parser", "command")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
LEFT_OUT = {"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache"}


def distribution_name(kind: str, name: str) -> str:
    """Return the distribution of a new plugin, which is also the name of its folder."""
    return f"llmd-{kind}-{name}"


def check_name(name: str) -> None:
    """Check that a plugin may have this name.

    Raises:
        ConfigError: it may not.
    """
    if not NAME.match(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a plugin",
            hint="use lower-case letters, digits and single hyphens between them, such as my-device",
        )


def create_project(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the project of a new plugin into a folder; return the files, relative to it.

    Raises:
        ConfigError: the name cannot be used.
        ConflictError: the folder has files.
    """
    check_name(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConflictError(f"{folder} exists and is not empty", hint="use --path to name another folder")
    written = []
    for path, text in _files(STARTERS / kind.replace("-", "_")):
        target = Path(renamed(str(path), name))
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).write_text(renamed(text, name))
        written.append(target)
    return written


def renamed(text: str, name: str) -> str:
    """Return a text of a starter with the new name in all its spellings."""
    camel = "".join(word.capitalize() for word in name.split("-"))
    text = re.sub(r"(?<=_)example\b", name.replace("-", "_"), text)  # the import package
    text = re.sub(r"\bExample(?=[A-Z])", camel, text)  # classes
    return re.sub(r"\bexample\b", name, text)


def _files(starter: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a starter in order, with their texts."""
    for root, folders, names in os.walk(starter, followlinks=True):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        for file in sorted(names):
            path = Path(root) / file
            yield path.relative_to(starter), path.read_text()
