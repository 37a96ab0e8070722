"""Downloads the pinned source package of llama-cpp-python and builds llama.cpp from it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "llama-cpp-python"
SOURCES = "vendor/llama.cpp"


def pinned_version(requirements: str) -> str:
    """Return the version that a requirements file pins."""
    lines = (line.partition("==") for line in requirements.splitlines())
    return next(version for name, _, version in lines if name == PACKAGE)


def fetch(version: str, folder: Path) -> Path:
    """Download and unpack the source package; return its llama.cpp folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PACKAGE]
    subprocess.run([*pip, "--dest", str(folder), f"{PACKAGE}=={version}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()
    (sources,) = folder.glob(f"*/{SOURCES}")
    return sources


def build(sources: Path, folder: Path, targets: Sequence[str], options: Mapping[str, str]) -> Path:
    """Compile targets on all CPUs; return the output folder."""
    defined = [f"-D{name}={value}" for name, value in options.items()]
    run(["cmake", "-S", str(sources), "-B", str(folder), "-G", "Ninja", *defined])
    jobs = str(len(os.sched_getaffinity(0)))
    run(["cmake", "--build", str(folder), "-j", jobs, "--target", *targets])
    return folder / "bin"


def run(command: Sequence[str]) -> None:
    """Run a build step at low priority; print its output only if it fails."""
    done = subprocess.run(
        ["nice", "-n", "15", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout)
