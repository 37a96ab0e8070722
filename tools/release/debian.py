"""Pythons from Debian's packages, unpacked into folders without installing anything.

They give a release on one machine the headers of every Python and machine, and run its wheels there: those of
this machine directly, the others in qemu.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.release.rules import ReleaseError
from tools.release.targets import Target

NATIVE = "x86_64"
PACKAGES = "base-files,libstdc++6,python{0}-minimal,libpython{0}-stdlib,libpython{0}-dev"


@dataclass(frozen=True)
class DebianPython:
    """A Python of Debian in a folder."""

    target: Target
    folder: Path

    @property
    def command(self) -> Sequence[str]:
        """The start of a command line that runs it."""
        program = str(self.folder / "usr" / "bin" / f"python{self.target.python}")
        if self.target.machine == NATIVE:
            return (program,)
        return (f"qemu-{self.target.machine}", "-cpu", "max", "-L", str(self.folder), program)

    @property
    def headers(self) -> Path:
        return self.folder / "usr" / "include"


def unpack(target: Target, folder: Path, patchelf: Path) -> DebianPython:
    """Unpack a Python into ``folder``, which is made.

    Raises:
        ReleaseError: Debian's packages could not be downloaded.
    """
    made = DebianPython(target, folder)
    options = ["--quiet", "--variant=extract", f"--architectures={target.architecture}"]
    packages = PACKAGES.format(target.python)
    command = ["mmdebstrap", *options, f"--include={packages}", target.suite, str(folder)]
    if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise ReleaseError(f"`{' '.join(command)}` failed; run it to see why")
    if target.machine == NATIVE:
        _relocate(made, patchelf)
    return made


def _relocate(python: DebianPython, patchelf: Path) -> None:
    """Make it run with the C library of its folder: that of a newer Debian does not run with this machine's.

    A path that is inherited (RPATH) also holds for the extensions that it loads.
    """
    libraries = [python.folder / top / "x86_64-linux-gnu" for top in ("lib", "usr/lib")]
    loader = python.folder / "lib64" / "ld-linux-x86-64.so.2"
    path = ":".join(str(folder) for folder in libraries)
    options = ["--force-rpath", "--set-rpath", path, "--set-interpreter", str(loader)]
    subprocess.run([str(patchelf), *options, python.command[0]], check=True)
