"""Installs a release on each Python and machine that it has a compiled wheel for, and runs it there."""

from __future__ import annotations

from pathlib import Path

from tools.release.build import Builder, run
from tools.release.debian import NATIVE, DebianPython
from tools.release.installation_check import OURS

CHECK = Path(__file__).with_name("installation_check.py")
GLIBC = "2_36"
"""The C library of Debian 12, where foreign wheels are run."""


def lock_dependencies(builder: Builder) -> Path:
    """Write the locked dependencies of all distributions, with hashes."""
    path = builder.scratch / "dependencies.txt"
    options = ["--quiet", "--locked", "--all-packages", "--no-emit-workspace", "--no-default-groups"]
    run([builder.uv, "export", *options, "--output-file", path], folder=builder.scratch / "sources")
    return path


def try_installation(builder: Builder, python: DebianPython, dependencies: Path, version: str) -> None:
    """Install the locked dependencies, then the release without an index; run the command and the kernels.

    Raises:
        CalledProcessError: a step failed; its output is on the terminal.
    """
    folder = builder.scratch / f"installed-{python.target.machine}-{python.target.python}"
    where, command, variables = _prepare(folder, python)
    install: list[str | Path] = [builder.uv, "pip", "install", "-q", *where]
    # Outside the workspace: uv would refuse its constraints, which have no hashes.
    run([*install, "--require-hashes", "--requirement", dependencies], folder=builder.scratch)
    run([*install, "--no-index", "--no-deps", "--find-links", builder.out, *OURS], folder=builder.scratch)
    run([*command, folder / "bin" / "llmd", "--version"], variables=variables)
    run([*command, CHECK, version], variables=variables)


def _prepare(folder: Path, python: DebianPython) -> tuple[list[str | Path], list[str | Path], dict[str, str]]:
    """Return uv's options that name an installation, its Python, and variables for it.

    For this machine an installation is a new environment; for another one a folder of packages, because the
    Python that would make an environment runs in the emulator only when it is started so.
    """
    if python.target.machine == NATIVE:
        run([*python.command, "-m", "venv", "--without-pip", folder])
        return ["--python", folder / "bin" / "python"], [folder / "bin" / "python"], {}
    platform = f"{python.target.machine}-manylinux_{GLIBC}"
    options: list[str | Path] = [
        "--target",
        folder,
        "--python-platform",
        platform,
        "--python-version",
        python.target.python,
    ]
    return [*options, "--only-binary", ":all:"], [*python.command], {"PYTHONPATH": str(folder)}
