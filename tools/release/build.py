"""Builds source packages and wheels from the committed sources, with the locked tools of the workspace."""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tools.release.debian import NATIVE, DebianPython
from tools.wheelhouse import DISTRIBUTIONS

NATIVE_DISTRIBUTION = "llmd_backend_cpu"
BUILD_TOOLS = ("cmake", "nanobind", "ninja", "scikit-build-core")
TOOLCHAIN = Path(__file__).with_name("aarch64.cmake")


@dataclass(frozen=True)
class Builder:
    """Where to build, with which tools."""

    root: Path
    """The checkout that `make setup` has prepared."""
    scratch: Path
    """A folder for everything that is not released."""
    out: Path
    """The folder of the release."""
    epoch: str
    """Time of all files in archives, in seconds since 1970, so that the same commit gives the same bytes."""

    @property
    def uv(self) -> Path:
        return self.root / ".tools" / "bin" / "uv"

    @property
    def tools(self) -> Path:
        """The programs of ``requirements.txt``."""
        return self.root / ".venv-release" / "bin"

    def copy_sources(self) -> Path:
        """Unpack the committed sources, without whatever else lies in the checkout."""
        archive = self.scratch / "sources.tar"
        run(["git", "archive", "--output", archive, "HEAD"], folder=self.root)
        with tarfile.open(archive) as packed:
            packed.extractall(self.scratch / "sources", filter="data")
        return self.scratch / "sources"

    def source_packages(self, sources: Path) -> list[Path]:
        """Build the source package of every distribution."""
        python = self.root / ".venv" / "bin" / "python"
        for name in DISTRIBUTIONS:
            self._build("--sdist", sources / name, python, self.out)
        return sorted(self.out.glob("llmd_*.tar.gz"))

    def pure_wheel(self, source_package: Path) -> None:
        """Build the wheel for every Python and machine from a source package."""
        self._build("--wheel", source_package, self.root / ".venv" / "bin" / "python", self.out)

    def native_wheel(self, source_package: Path, python: DebianPython, host: DebianPython) -> Path:
        """Build the wheel of the CPU backend for ``python``, running ``host``, the same version for this
        machine; return the wheel with the platform tag that its symbols allow.
        """
        built = self.scratch / f"wheel-{python.target.machine}-{python.target.python}"
        environment = self._build_environment(host)
        variables = cross_variables(python) if python.target.machine != NATIVE else {}
        # Without the paths of this machine in the extension. Debian's Python.h includes a header of the
        # machine from the folder of all headers, which is searched last: the compiler's own come first.
        flags = {"CXXFLAGS": f"-ffile-prefix-map={self.scratch}=. -idirafter {python.headers}"}
        self._build("--wheel", source_package, environment, built, variables | flags)
        (wheel,) = built.glob("*.whl")
        before = set(self.out.iterdir())
        self._run([self.tools / "auditwheel", "repair", "--plat", "auto", "-w", self.out, wheel])
        (repaired,) = set(self.out.iterdir()) - before
        return repaired

    def _build_environment(self, host: DebianPython) -> Path:
        """Make an environment with the build tools; return its Python."""
        folder = self.scratch / f"build-{host.target.python}"
        python = folder / "bin" / "python"
        if not folder.exists():
            run([*host.command, "-m", "venv", "--without-pip", folder])
            links = ("--no-index", "--find-links", self.root / "wheelhouse")
            run([self.uv, "pip", "install", "-q", "--python", python, *links, *BUILD_TOOLS])
        return python

    def _build(
        self, kind: str, source: Path, python: Path, out: Path, variables: dict[str, str] | None = None
    ) -> None:
        options = ("--no-build-isolation", "--python", python, "--out-dir", out)
        path = {"PATH": f"{python.parent}:{os.environ['PATH']}"}  # cmake and ninja
        self._run([self.uv, "build", kind, *options, source], path | (variables or {}))
        (out / ".gitignore").unlink(missing_ok=True)  # uv writes it

    def _run(self, command: list[str | Path], variables: dict[str, str] | None = None) -> None:
        fixed = {"SOURCE_DATE_EPOCH": self.epoch, "TMPDIR": str(self.scratch), "PYTHONHASHSEED": "0"}
        path = {"PATH": f"{self.tools}:{os.environ['PATH']}"}  # patchelf
        run(command, variables=path | fixed | (variables or {}))


def cross_variables(python: DebianPython) -> dict[str, str]:
    """Return the variables with which CMake and scikit-build-core build for another machine."""
    version, machine = python.target.python.replace(".", ""), python.target.machine
    return {
        "CMAKE_TOOLCHAIN_FILE": str(TOOLCHAIN),
        "LLMD_TARGET_HEADERS": str(python.headers),
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}-{machine}-linux-gnu.so",
    }


def run(
    command: list[str | Path], *, folder: Path | None = None, variables: dict[str, str] | None = None
) -> None:
    """Run a program; its errors go to the terminal."""
    environment = {**os.environ, **(variables or {})}
    subprocess.run([str(word) for word in command], check=True, cwd=folder, env=environment)
