"""Builds llama.cpp's own server from the source package of llama-cpp-python: ``python -m bench.llama_server FOLDER``.

The package's own Python server serves one request at a time; this is the peer that batches. The version is the one
that ``bench/requirements.txt`` pins. Needs pip, cmake, ninja and a C++ compiler, and takes some ten minutes.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "llama-cpp-python"
SOURCES = "vendor/llama.cpp"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
}
# Its AMX kernels end the process on virtual machines that offer AMX (seen with 0.3.36): built for this processor without.
WITHOUT_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


def main() -> None:
    """Leave ``llama-server`` and the pinned ``version`` in the folder."""
    folder = Path(sys.argv[1])
    version = pinned_version((ROOT / "bench" / "requirements.txt").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sources = fetch(version, folder)
    built = build(sources, folder / "build", jobs=len(os.sched_getaffinity(0)))
    shutil.copy(built, folder / "llama-server")
    (folder / "version").write_text(version)
    shutil.rmtree(folder / "build")
    shutil.rmtree(sources.parents[1])


def pinned_version(requirements: str) -> str:
    """The version that a file of requirements pins."""
    lines = (line.partition("==") for line in requirements.splitlines())
    return next(version for name, _, version in lines if name == PACKAGE)


def fetch(version: str, folder: Path) -> Path:
    """Download and unpack the source package; returns where llama.cpp lies in it."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE]
    subprocess.run([*pip, "--dest", str(folder), f"{PACKAGE}=={version}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()
    (sources,) = folder.glob(f"*/{SOURCES}")
    return sources


def build(sources: Path, folder: Path, *, jobs: int) -> Path:
    """Compile ``llama-server``; returns the program."""
    run(["cmake", "-S", str(sources), "-B", str(folder), "-G", "Ninja", *defined(platform.machine())])
    run(["cmake", "--build", str(folder), "--target", "llama-server", "-j", str(jobs)])
    return folder / "bin" / "llama-server"


def defined(machine: str) -> list[str]:
    """What cmake is told on a machine."""
    flags = (
        {f"CMAKE_{language}_FLAGS": WITHOUT_AMX for language in ("C", "CXX")} if machine == "x86_64" else {}
    )
    return [f"-D{name}={value}" for name, value in (OPTIONS | flags).items()]


def run(command: Sequence[str]) -> None:
    """Run a build step after everything else that this machine has to do; its output only where it fails."""
    done = subprocess.run(
        ["nice", "-n", "15", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout)


if __name__ == "__main__":
    main()
