"""Finds the command that starts this installation: in a venv, of pipx or uv tool, or of the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

from llmd.host.names import CORE_DISTRIBUTION

SCRIPT = "llmd"


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


def unreachable_program(programs: Sequence[str]) -> tuple[Path, Path] | None:
    """Return the first program that other users cannot reach (links are followed), and the first folder above
    it that they may not enter; None if there is none.
    """
    files = [Path(one).resolve() for one in programs]
    parents = [(file, parent) for file in files for parent in reversed(file.parents)]
    return next((found for found in parents if not found[1].stat().st_mode & 0o001), None)
