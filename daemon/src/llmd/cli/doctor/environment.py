"""The Python, the home and the variables that llmd runs with."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from llmd.cli.doctor.check import Check, Surroundings, quoted
from llmd.host.names import CORE_DISTRIBUTION, project_of

PROGRAM = "llmd"
LIBRARIES = (
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libgomp.so.1",
    "libssl.so.3",
    "libcrypto.so.3",
    f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0",
)
"""Libraries that Python, NumPy and the CPU backend load."""


def checks(around: Surroundings) -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    yield home_check(around.environ.get("HOME"), Path(pwd_home()))
    yield modules_check(_entries(around.environ.get("PYTHONPATH", "")), required_modules())
    yield libraries_check(_entries(around.environ.get("LD_LIBRARY_PATH", "")))
    yield programs_check(_entries(around.environ.get("PATH", "")))


def home_check(home: str | None, own: Path) -> Check:
    """Check that there is a home folder, for llmd's folders. ``own`` is the one in the user database."""
    if home and Path(home).is_dir():
        return Check("home", "ok", home)
    seen = f"HOME is {home}, which is no folder" if home else "HOME is not set"
    if own.is_dir():
        return Check("home", "warn", seen, f"set it: `export HOME={quoted(own)}`")
    return Check(
        "home", "warn", seen, "set HOME, or XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and XDG_CACHE_HOME"
    )


def pwd_home() -> str:
    """Return this user's home folder in the user database; ``/nonexistent`` if the user is not in it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/nonexistent"


def required_modules() -> tuple[str, ...]:
    """Return the modules of the packages that llmd needs, and llmd if it is installed elsewhere."""
    installed = metadata.distribution(CORE_DISTRIBUTION)
    packages = [project_of(line) for line in installed.requires or () if "extra ==" not in line]
    own = [PROGRAM] if Path(str(installed.locate_file(PROGRAM))).is_dir() else []
    return (*own, *(package.replace("-", "_") for package in packages))


def modules_check(folders: Sequence[Path], modules: Sequence[str]) -> Check:
    """Check that no folder of PYTHONPATH has another version of a package that llmd needs."""
    found = [path for folder in folders for module in modules for path in _module_files(folder, module)]
    if not found:
        return Check("python-path", "ok", "PYTHONPATH replaces no package of llmd")
    seen = f"PYTHONPATH replaces packages that llmd needs: {', '.join(map(str, found))}"
    return Check("python-path", "warn", seen, "start llmd without it: `unset PYTHONPATH`")


def _module_files(folder: Path, module: str) -> list[Path]:
    places = (folder / module / "__init__.py", folder / f"{module}.py")
    return [place for place in places if place.is_file()]


def libraries_check(folders: Sequence[Path]) -> Check:
    """Check that no folder of LD_LIBRARY_PATH has another version of a library that llmd loads."""
    found = [folder / name for folder in folders for name in LIBRARIES if (folder / name).exists()]
    if not found:
        return Check("library-path", "ok", "LD_LIBRARY_PATH replaces no library of llmd")
    seen = f"LD_LIBRARY_PATH replaces libraries that llmd loads: {', '.join(map(str, found))}"
    return Check("library-path", "warn", seen, "start llmd without it: `unset LD_LIBRARY_PATH`")


def programs_check(folders: Sequence[Path]) -> Check:
    """Check that there is one ``llmd`` on PATH; several names of one program are fine."""
    programs = {
        path.resolve(): path for path in (folder / PROGRAM for folder in folders) if os.access(path, os.X_OK)
    }
    if len(programs) <= 1:
        return Check("programs", "ok", next((str(path) for path in programs.values()), "not on PATH"))
    first, *others = programs.values()
    seen = (
        f"there are {len(programs)} installations on PATH: {first} is used, {', '.join(map(str, others))} not"
    )
    return Check(
        "programs", "warn", seen, f"uninstall the one that you do not use: `{_uninstalling(others[0])}`"
    )


def _uninstalling(program: Path) -> str:
    python = program.resolve().with_name("python")
    return (
        f"{quoted(python)} -m pip uninstall {CORE_DISTRIBUTION}"
        if python.exists()
        else f"rm {quoted(program)}"
    )


def _entries(variable: str) -> list[Path]:
    return [Path(entry) for entry in dict.fromkeys(variable.split(os.pathsep)) if entry]
