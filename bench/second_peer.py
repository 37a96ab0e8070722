"""Compares llmd with a fork of llama.cpp over HTTP: ``python -m bench.second_peer FOLDER [SHAPE]``.

``FOLDER`` has the fork's ``llama-server`` and ``llama-quantize``, built by you. Nothing of it is used but
these programs, and the page states the version that they report. METHODOLOGY.md says what is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from bench.checkpoint import MODELS, checkpoint_directory, write_checkpoint
from bench.cpu_rounds import SHORT, Case, Named, Prompts, Round, Rounds, in_turn, title
from bench.http_side import HttpSide
from bench.machine import describe
from bench.peer import write_plain
from bench.publication import publish
from bench.quiet import DisturbedError, QuietRounds
from bench.second_peer_report import page
from bench.servers import Server, llama_server, llmd_server
from bench.shapes import SHAPES, Shape
from bench.start_sides import ISAS

KINDS = ("Q4_0", "Q4_K_M")
"""Types of the GGUF files that both sides run."""
QUANT = "q4"
"""The format that llmd makes of the checkpoint."""
REPACKED = ("--run-time-repack",)
PROMPT, DEPTH, BATCH = 512, 4096, 16
STEPS = 32
"""Tokens of an answer after its first."""
ALONE = (Case("prefill", 1, PROMPT), Case("decode", 1, SHORT), Case("decode", 1, DEPTH))
TOGETHER = (Case("decode", BATCH, SHORT),)


class Timed(Named, Protocol):
    """A `bench.http_side.HttpSide`."""

    def prefill_rate(self, prompt: Sequence[int]) -> float: ...

    def decode_rate(self, prompts: Sequence[Sequence[int]], steps: int) -> float: ...


@dataclass(frozen=True)
class Loaded:
    """How servers are loaded for some cases."""

    cases: Sequence[Case]
    slots: int
    context_len: int


LOADS = (Loaded(ALONE, 1, DEPTH + 256), Loaded(TOGETHER, BATCH, 256))


@dataclass(frozen=True)
class Fork:
    """The programs of the second peer."""

    folder: Path

    @property
    def server(self) -> Path:
        """Its server."""
        return self.folder / "llama-server"

    def version(self) -> str:
        """Return what its server says of its version: a number and a commit."""
        done = subprocess.run([self.server, "--version"], capture_output=True, text=True, check=True)
        return (done.stdout + done.stderr).splitlines()[0].removeprefix("version: ")

    def quantised(self, plain: Path, kind: str, file: Path) -> Path:
        """Quantise a GGUF file to a type with its usual choice of a type for each tensor."""
        part = file.with_suffix(".part")
        subprocess.run(
            [self.folder / "llama-quantize", plain, part, kind], check=True, stdout=subprocess.DEVNULL
        )
        return part.rename(file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.second_peer")
    parser.add_argument("folder", type=Path, help="has llama-server and llama-quantize")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument(
        "--isa", choices=ISAS, help="limit llmd to an instruction set; build the peer with it"
    )
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    fork, shape = Fork(arguments.folder), SHAPES[arguments.shape]
    for program in ("llama-server", "llama-quantize"):
        if not (fork.folder / program).exists():
            parser.error(f"{fork.folder} has no {program}: build it, and name the folder that it is in")
    threads = len(os.sched_getaffinity(0))
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {describe()}; {threads} threads each, {arguments.rounds} interleaved rounds"
    quiet, found = QuietRounds(), list[Rounds]()
    disturbed: DisturbedError | None = None
    try:
        found.extend(measure(fork, shape, arguments.isa, threads, arguments.rounds, quiet))
    except DisturbedError as error:
        disturbed = error
    text = page(shape.name, arguments.isa, machine, fork.version(), found, quiet.tally)
    publish(f"second-peer-{shape.name}" + (f"-{arguments.isa}" if arguments.isa else ""), text, disturbed)


def measure(
    fork: Fork, shape: Shape, isa: str | None, threads: int, rounds: int, quiet: QuietRounds
) -> Iterator[Rounds]:
    """Yield the rounds of each case.

    Raises:
        DisturbedError: other processes disturbed too many rounds of a case.
    """
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    files = gguf_files(fork, directory)
    for load in LOADS:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmd-second-peer-")))
            opened = [*ours(directory, files, folder, load, isa), *theirs(fork, files, load, threads)]
            sides = [HttpSide(name, stack.enter_context(server).url) for name, server in opened]
            prompts = Prompts(shape.vocab)
            for case in load.cases:
                yield taken(case, sides, prompts, rounds, quiet)


def gguf_files(fork: Fork, directory: Path) -> dict[str, Path]:
    """Return the checkpoint as a GGUF file of each kind, made by the fork's quantiser unless it is there."""
    files = {kind: MODELS / f"{directory.name}.second.{kind}.gguf" for kind in KINDS}
    missing = {kind: file for kind, file in files.items() if not file.exists()}
    if missing:
        plain = write_plain(directory, MODELS / f"{directory.name}.second.bf16.gguf")
        for kind, file in missing.items():
            fork.quantised(plain, kind, file)
        plain.unlink()
    return files


def ours(
    directory: Path, files: dict[str, Path], folder: Path, load: Loaded, isa: str | None
) -> Iterator[tuple[str, AbstractContextManager[Server]]]:
    """Yield llmd on the checkpoint, quantised while loading, and on each file."""
    for name, model in {QUANT: directory, **files}.items():
        quant = QUANT if name == QUANT else None
        own = folder / name
        own.mkdir()
        yield (
            f"llmd {name}",
            llmd_server(model, own, quant=quant, slots=load.slots, context_len=load.context_len, isa=isa),
        )


def theirs(
    fork: Fork, files: dict[str, Path], load: Loaded, threads: int
) -> Iterator[tuple[str, AbstractContextManager[Server]]]:
    """Yield the peer on each file, repacked while loading."""
    for kind, file in files.items():
        yield (
            f"fork {kind}",
            llama_server(
                fork.server,
                file,
                slots=load.slots,
                context_len=load.context_len,
                threads=threads,
                waiting="default",
                options=REPACKED,
            ),
        )


def taken(case: Case, sides: Sequence[Timed], prompts: Prompts, rounds: int, quiet: QuietRounds) -> Rounds:
    """Measure a case: each prompt of a prefill is new; those of a decode case stay the same, and are in the
    servers' prefix caches after the warm-up.
    """
    same = prompts.draw(case.batch, case.depth)

    def measured(number: int) -> Round:
        asked = prompts.draw(1, case.depth) if case.kind == "prefill" else same
        rates = {}
        for side in in_turn(sides, number):
            rates[side.name] = (
                side.prefill_rate(asked[0]) if case.kind == "prefill" else side.decode_rate(asked, STEPS)
            )
        return Round(rates, None)

    found = quiet.take(title(case), measured, rounds)
    return Rounds.of(case, sides, found)


if __name__ == "__main__":
    main()
