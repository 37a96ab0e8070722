"""Opens the sides of `bench.cpu` with their models, caches and KV memory."""

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

STATES = 4
"""Slots for the states of a sequence."""


@dataclass(frozen=True)
class Start:
    """How a side started."""

    load_s: float
    first_token_s: float
    """Includes loading."""
    resident: dict[str, int]
    """Resident bytes after the first token."""
    kv_bytes: int | None
    """Bytes of the KV pool."""


@dataclass(frozen=True)
class Room:
    """What the sequences of a measurement need."""

    context_len: int
    """Maximum tokens of a sequence."""
    sequences: int
    """Maximum concurrent sequences."""
    tokens: int
    """Tokens of all sequences together."""
    token_bytes: int
    """KV bytes of a token."""
    state_bytes: int = 0
    """Bytes of the states of a sequence."""

    @property
    def kv_memory(self) -> int:
        """Bytes of KV pools: of states, each sequence has the one that it changes and kept ones."""
        return self.tokens * self.token_bytes + STATES * (self.sequences + 1) * self.state_bytes

    @classmethod
    def for_profile(cls, profile: Profile, shape: Shape) -> Self:
        """Return the room for a profile's longest sequence, its largest batch and a scored text."""
        most = max(profile.batches, default=1)
        grown = profile.grown + most  # the first sequences grow while the last prompts are read
        longest = max(profile.prompt, *profile.depths, RANDOM_TOKENS) + grown
        tokens = max(longest, most * (SHORT + grown)) + most * BLOCK_LEN
        return cls(longest, most, tokens, shape.kv_token_bytes, shape.state_bytes)

    @classmethod
    def for_texts(cls, length: int, token_bytes: int, state_bytes: int = 0) -> Self:
        """Return the room for one text at a time."""
        return cls(length, 1, 2 * length, token_bytes, state_bytes)


def kept_by_dense(directory: Path) -> int:
    """Return the KV bytes of a token in float16 of a dense model, from its configuration."""
    config = json.loads((directory / "config.json").read_text())
    heads = config["num_hidden_layers"] * config["num_key_value_heads"]
    return 2 * 2 * int(heads * config["head_dim"])


def open_llmd(
    directory: Path,
    quant: str | None,
    cache: Path,
    room: Room,
    threads: int,
    isa: str | None = None,
    kv_dtype: KVDtype = "f16",
) -> Side:
    """Open our side on a checkpoint, with weights quantised while loading or taken from its cache."""
    settings = Settings(
        directory=str(directory),
        quant=quant,
        cache=str(cache),
        context_len=room.context_len,
        slots=room.sequences,
        kv_memory=room.kv_memory,
        threads=threads,
        isa=isa,
        kv_dtype=kv_dtype,
    )
    text = msgspec.json.encode(settings).decode()
    # Do not use the user's cache.
    return Side("llmd", [sys.executable, "-m", "bench.llmd_side", text], {"XDG_CACHE_HOME": str(cache)})


def open_peer(file: Path, build: str, threads: int, kv_type: str = "F16", waiting: str = "default") -> Side:
    """Open a build of llama.cpp on a GGUF file; ``waiting`` is its threads' wait policy (`bench.peer`)."""
    command = [str(PEER_PYTHON), "-m", "bench.llama_cpp_side", str(file), str(threads), kv_type]
    name = f"llama.cpp {build}" if waiting == "default" else f"llama.cpp {build}, {waiting}"
    return Side(name, command, peer_environment(build) | waiting_environment(waiting))


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep one CPU busy with a child process, which does not count as another process's work."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def open_probe(num_bytes: int, threads: int) -> Side:
    """Open the probe of the machine's limits, with that much memory to read."""
    return Side("probe", [sys.executable, "-m", "bench.probe", str(num_bytes), str(threads)])


def started(side: Side) -> Start:
    """Measure the first token of a side that has just loaded."""
    first = side.call("open", [list(range(8))], 8)
    side.call("close")
    facts: dict[str, Any] = side.facts
    return Start(facts["load_s"], facts["load_s"] + first, side.call("resident_bytes"), facts.get("kv_bytes"))


def drop_packed(cache: Path) -> None:
    """Remove llmd's packed weights from its cache folder."""
    shutil.rmtree(cache / "packed", ignore_errors=True)


def drop_cached(*paths: Path) -> None:
    """Make the system drop the cached pages of files, or of all files in folders."""
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                descriptor = os.open(file, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
