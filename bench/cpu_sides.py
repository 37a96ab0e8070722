"""Opens the sides of `bench.cpu` with what each needs: models in its own form, caches, room for keys and values."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from bench.cpu_profiles import Profile
from bench.cpu_quality import RANDOM_TOKENS
from bench.cpu_rounds import SHORT
from bench.llmd_side import Settings
from bench.peer import PEER_PYTHON, peer_environment, waiting_environment
from bench.shapes import Shape
from bench.worker import Side
from llmd.api import KVDtype
from llmd.api.step import BLOCK_LEN


@dataclass(frozen=True)
class Start:
    """Seconds of loading, and until the first token after it; bytes resident then, and of the KV pool."""

    load_s: float
    first_token_s: float
    resident: dict[str, int]
    kv_bytes: int | None


@dataclass(frozen=True)
class Room:
    """What the sequences of a measurement need: tokens of each at most, sequences at once, tokens of all, bytes of one."""

    context_len: int
    sequences: int
    tokens: int
    token_bytes: int

    @classmethod
    def for_profile(cls, profile: Profile, shape: Shape) -> Self:
        """For the longest sequence of a profile, for its most sequences, and for a text that is scored."""
        most = max(profile.batches, default=1)
        grown = profile.grown + most  # the first of several prompts grow while the last are read
        longest = max(profile.prompt, *profile.depths, RANDOM_TOKENS) + grown
        tokens = max(longest, most * (SHORT + grown)) + most * BLOCK_LEN
        return cls(longest, most, tokens, shape.kv_token_bytes)

    @classmethod
    def for_texts(cls, length: int, directory: Path) -> Self:
        """For one text at a time, on the model of a directory."""
        config = json.loads((directory / "config.json").read_text())
        heads = config["num_hidden_layers"] * config["num_key_value_heads"]
        return cls(length, 1, 2 * length, 2 * 2 * heads * config["head_dim"])


def open_llmd(
    directory: Path,
    quant: str | None,
    cache: Path,
    room: Room,
    threads: int,
    isa: str | None = None,
    kv_dtype: KVDtype = "f16",
) -> Side:
    """Our side on a checkpoint, with weights quantised as it loads or as its cache has them."""
    settings = Settings(
        directory=str(directory),
        quant=quant,
        cache=str(cache),
        context_len=room.context_len,
        slots=room.sequences,
        kv_memory=room.tokens * room.token_bytes,
        threads=threads,
        isa=isa,
        kv_dtype=kv_dtype,
    )
    text = msgspec.json.encode(settings).decode()
    # The cache of a person is left alone.
    return Side("llmd", [sys.executable, "-m", "bench.llmd_side", text], {"XDG_CACHE_HOME": str(cache)})


def open_peer(file: Path, build: str, threads: int, kv_type: str = "F16", waiting: str = "default") -> Side:
    """A build of llama.cpp on a GGUF file; ``waiting`` is how its threads wait for each other (`bench.peer`)."""
    command = [str(PEER_PYTHON), "-m", "bench.llama_cpp_side", str(file), str(threads), kv_type]
    name = f"llama.cpp {build}" if waiting == "default" else f"llama.cpp {build}, {waiting}"
    return Side(name, command, peer_environment(build) | waiting_environment(waiting))


@contextmanager
def busy_process() -> Iterator[None]:
    """Another process that keeps one processor busy; as a child of this one it does not count as others' work."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def open_probe(num_bytes: int, threads: int) -> Side:
    """The machine's own limits, read from memory of that size."""
    return Side("probe", [sys.executable, "-m", "bench.probe", str(num_bytes), str(threads)])


def started(side: Side) -> Start:
    """How a side that has just loaded gets to its first token."""
    first = side.call("open", [list(range(8))], 8)
    side.call("close")
    facts: dict[str, Any] = side.facts
    return Start(facts["load_s"], facts["load_s"] + first, side.call("resident_bytes"), facts.get("kv_bytes"))


def drop_packed(cache: Path) -> None:
    """Remove the weights that llmd keeps in its cache folder as devices lay them out."""
    shutil.rmtree(cache / "packed", ignore_errors=True)


def drop_cached(*paths: Path) -> None:
    """Ask the system to forget what it has read of files, or of those in folders."""
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                descriptor = os.open(file, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
