"""llama.cpp as every measurement uses it: its builds, its environment, and models in its form."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
PEER_BUILDS = ROOT / ".bench-llama-cpp"
PEER_SERVER = PEER_BUILDS / "native" / "llama-server"
"""That of the build which most measurements use."""


def peer_version() -> str:
    """That of the package that it was built from."""
    return (PEER_BUILDS / "version").read_text().strip()


def peer_environment(build: str) -> dict[str, str]:
    """What tells llama-cpp-python which build to take."""
    return {"LLAMA_CPP_LIB_PATH": str(PEER_BUILDS / build)}


def waiting_environment(waiting: str) -> dict[str, str]:
    """What tells its threads how to wait for each other: ``default`` (OpenMP's: they spin a while) or ``passive``.

    ``active`` would spin on while the other side is measured.
    """
    return {} if waiting == "default" else {"OMP_WAIT_POLICY": waiting}


def run_peer(module: str, *arguments: str) -> str:
    """What a module prints in the peer's environment.

    Raises:
        RuntimeError: it fails; with the end of what it said.
    """
    done = subprocess.run(
        [str(PEER_PYTHON), "-m", module, *arguments],
        env=os.environ | peer_environment("native"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def make_gguf(directory: Path, kind: str, file: Path) -> Path:
    """A checkpoint as a GGUF file of one of llama.cpp's types, unless that is there and no older than the weights."""
    weights = directory / "model.safetensors"
    if not file.exists() or file.stat().st_mtime < weights.stat().st_mtime:
        run_peer("bench.gguf_file", str(directory), str(file), kind)
    return file
