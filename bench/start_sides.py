"""The two sides of `bench.starts`: how each starts on a model, forgets it, and loads it while running."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from bench.cpu_sides import drop_cached, drop_packed, open_peer, started
from bench.first_token import MODEL, Launched, launched
from bench.peer import PEER_BUILDS
from bench.servers import free_port, llama_command, llmd_command
from bench.startup import environment_below
from llmd_backend_cpu.plugin import TEST_ISA

CONTEXT_LEN = 1024
FIRST_ID = 256
"""The first token of `bench.vocabulary` that is a pair of letters."""
PROMPT_LEN = 8
ISAS = ("avx2",)
"""Instruction sets to which a comparison can be limited; the peer has a build with the same name for each."""


class StartSide(Protocol):
    """A side of a comparison of starts."""

    name: str

    def launch(self) -> AbstractContextManager[Launched]:
        """Start the server on the model."""
        ...

    def forget(self) -> None:
        """Make the next start a first start: without cached results, and with the model's file read from the
        disk.
        """
        ...


class Prompts:
    """Prompts of eight tokens; the first tokens of 200 consecutive prompts are all different."""

    def __init__(self) -> None:
        self._firsts = itertools.count()

    def draw(self) -> list[int]:
        first = FIRST_ID + next(self._firsts) % 200
        return list(range(first, first + PROMPT_LEN))


class Llmd:
    """The daemon on a checkpoint or a GGUF file; ``folder`` is for its caches, ``isa`` limits the instruction
    set.
    """

    name = "llmd"

    def __init__(
        self, model: Path, quant: str | None, folder: Path, threads: int, isa: str | None = None
    ) -> None:
        self._model, self._folder, self._isa = model, folder, isa
        self._options = ["--threads", str(threads), *(["--quant", quant] if quant else [])]

    def launch(self) -> AbstractContextManager[Launched]:
        return self._launch(self._model, options=["--alias", MODEL])

    def launch_empty(self) -> AbstractContextManager[Launched]:
        """Start the daemon without a model."""
        return self._launch(options=[])

    def forget(self) -> None:
        drop_packed(self._folder / "cache" / "llmd")
        drop_cached(self._model)

    @contextmanager
    def unloaded(self) -> Iterator[Launched]:
        """Run an idle daemon that has cached the model and unloaded it."""
        with self.launch() as daemon:
            daemon.first_token_s(Prompts().draw())
            unload(daemon)
            yield daemon

    def _launch(self, *models: Path, options: list[str]) -> AbstractContextManager[Launched]:
        port = free_port()
        command = llmd_command(port, *models, slots=1, context_len=CONTEXT_LEN)
        environment = environment_below(self._folder) | {"LLMD_ADDR": "", TEST_ISA: self._isa or ""}
        return launched([*command, *self._options, *options], port, environment)


class LlamaCpp:
    """llama.cpp's server on a GGUF file, without its warm-up pass, which would delay the first token."""

    name = "llama.cpp"

    def __init__(self, file: Path, threads: int, isa: str | None = None) -> None:
        self._file, self._threads, self._build = file, threads, isa or "native"

    def launch(self) -> AbstractContextManager[Launched]:
        port = free_port()
        server = PEER_BUILDS / self._build / "llama-server"
        command = llama_command(
            server, port, self._file, slots=1, context_len=CONTEXT_LEN, threads=self._threads
        )
        return launched([*command, "--alias", MODEL, "--no-warmup"], port, {})

    def forget(self) -> None:
        drop_cached(self._file)

    def load_s(self) -> float:
        """Return the time to load the model and compute a token in a process with the library imported."""
        with open_peer(self._file, self._build, self._threads) as side:
            return started(side).first_token_s


def unload(daemon: Launched) -> None:
    """Unload the model, like ``llmd stop MODEL``."""
    daemon.post("/llmd/stop", {"model": MODEL})


def write_back() -> None:
    """Write pending data to the disk, so that it does not slow down the next read."""
    os.sync()
