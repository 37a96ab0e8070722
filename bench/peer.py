"""llama.cpp for all measurements: its builds, its environment, and models as GGUF files."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import deque
from pathlib import Path

from llmd.builtin.guide import guide_directory
from llmd.conversion.convert import convert
from llmd.engine.composition import make_host

ROOT = Path(__file__).parents[1]
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
PEER_BUILDS = ROOT / ".bench-llama-cpp"
PEER_SERVER = PEER_BUILDS / "native" / "llama-server"
"""The server of the build that most measurements use."""

TOKENIZER = "tokenizer.json"


def peer_version() -> str:
    """Return the version of the package that llama.cpp was built from."""
    return (PEER_BUILDS / "version").read_text().strip()


def peer_environment(build: str) -> dict[str, str]:
    """Return the variables that select a build for llama-cpp-python."""
    return {"LLAMA_CPP_LIB_PATH": str(PEER_BUILDS / build)}


def waiting_environment(waiting: str) -> dict[str, str]:
    """Return the variables for the wait policy of its threads: ``default`` (OpenMP's: spin a while) or
    ``passive``.

    With ``active`` they would keep spinning while the other side is measured.
    """
    return {} if waiting == "default" else {"OMP_WAIT_POLICY": waiting}


def run_peer(module: str, *arguments: str) -> str:
    """Run a module in the peer's environment and return its output.

    Raises:
        RuntimeError: it failed; the message has the end of its standard error.
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
    """Convert a checkpoint to a GGUF file of a llama.cpp type, unless the file is up to date.

    llmd writes it in bf16, and llama.cpp quantises it.
    """
    weights = directory / "model.safetensors"
    if not file.exists() or file.stat().st_mtime < weights.stat().st_mtime:
        plain = write_plain(directory, file.with_suffix(".bf16.gguf"))
        run_peer("bench.gguf_file", str(plain), str(file), kind)
        plain.unlink()
    return file


def write_plain(directory: Path, file: Path) -> Path:
    """Convert a checkpoint to a GGUF file in bf16.

    The pre-tokenizer of the built-in model is replaced by one that the peer knows. Both sides are given
    tokens, so that it cuts no text.
    """
    with tempfile.TemporaryDirectory(prefix="llmd-cache-") as cache:
        architectures = make_host(Path(cache)).architectures()
        source = (
            _with_known_pre_tokenizer(directory, Path(cache)) if directory == guide_directory() else directory
        )
        deque(convert(source, file, architectures, quant="bf16", force=True), maxlen=0)
    return file


def _with_known_pre_tokenizer(directory: Path, cache: Path) -> Path:
    """Return a folder with links to a checkpoint and a tokenizer that only cuts digits and GPT-2's words."""
    folder = cache / directory.name
    folder.mkdir()
    for source in directory.iterdir():
        (folder / source.name).symlink_to(source)
    tokenizer = json.loads((directory / TOKENIZER).read_text())
    parts = tokenizer["pre_tokenizer"]["pretokenizers"]
    tokenizer["pre_tokenizer"]["pretokenizers"] = [part for part in parts if part["type"] != "Split"]
    (folder / TOKENIZER).unlink()
    (folder / TOKENIZER).write_text(json.dumps(tokenizer))
    return folder
