"""Both sides of `bench.starts`: how each is started on a model, made to forget it, and asked to load it where it runs."""

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
"""Of the tokens of `bench.vocabulary` that are pairs of letters."""
PROMPT_LEN = 8
ISAS = ("avx2",)
"""Instruction sets that a comparison may be limited to; the peer has a build of the same name for each."""


class StartSide(Protocol):
    """What a side of a comparison of starts does."""

    name: str

    def launch(self) -> AbstractContextManager[Launched]:
        """Start the server on the model."""
        ...

    def forget(self) -> None:
        """Let the next start be the first: nothing is made of the model yet, and its file must come from the disk."""
        ...


class Prompts:
    """Prompts of eight tokens that begin alike in no two of some hundred rounds."""

    def __init__(self) -> None:
        self._firsts = itertools.count()

    def draw(self) -> list[int]:
        first = FIRST_ID + next(self._firsts) % 200
        return list(range(first, first + PROMPT_LEN))


class Llmd:
    """The daemon on a checkpoint directory or a GGUF file. ``folder`` has its caches; ``isa`` limits its instruction set."""

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
        """A daemon that knows the model, has nothing of it in memory, and is at rest."""
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
    """llama.cpp's server on a GGUF file, without the pass that warms it up: its first token comes earlier so."""

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
        """Seconds until the library, in a process that has imported it, has loaded the model and computed a token."""
        with open_peer(self._file, self._build, self._threads) as side:
            return started(side).first_token_s


def unload(daemon: Launched) -> None:
    """Do what ``llmd stop MODEL`` does."""
    daemon.post("/llmd/stop", {"model": MODEL})


def write_back() -> None:
    """Let what is not on the disk yet not slow down what is read next."""
    os.sync()
