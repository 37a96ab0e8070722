"""Finds the command that starts this installation: in a venv, of pipx or uv tool, or of the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, distribution
from itertools import product
from pathlib import Path

from llmd.host.names import CORE_DISTRIBUTION

SCRIPT = "llmd"
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # nothing is written there
"""Folders of which the service of the system has its own (``PrivateTmp`` in its unit)."""


def launcher(installed: Distribution | None = None) -> tuple[str, ...]:
    """Return the absolute path of the script that was installed with this package.

    The installer's record names it, wherever the scripts of this kind of environment are. Without a script,
    the interpreter runs the module.
    """
    installed = installed or distribution(CORE_DISTRIBUTION)
    for file in installed.files or ():
        if file.name == SCRIPT and file.suffix == "":
            # Not resolved: a link in a virtual environment must keep its place.
            script = Path(os.path.normpath(str(installed.locate_file(file))))
            if script.is_file() and os.access(script, os.X_OK):
                return (str(script.absolute()),)
    return (sys.executable, "-m", "llmd.cli.main")


def unreachable_program(programs: Sequence[str]) -> tuple[Path, str] | None:
    """Return the first program that the service of the system cannot reach, and why; None if there is none.

    Links are followed.
    """
    for program in programs:
        path, file = Path(program).absolute(), Path(program).resolve()
        for folder in reversed(file.parents):
            if not folder.stat().st_mode & 0o001:
                return file, f"other users may not enter {folder}"
        for found, folder in product((path, file), TEMPORARY):
            if folder in found.parents:
                return found, f"it has a {folder} of its own"
    return None
