"""The daemon and llama.cpp's server under the same load, in turn: ``python -m bench.serving [SHAPE]``.

``make bench-serve`` builds what it needs first. Both servers run throughout and only one is asked at a time; the load is
``llmd bench serve``, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.checkpoint import checkpoint_directory, write_checkpoint
from bench.machine import describe
from bench.peer import PEER_SERVER, make_gguf, peer_version
from bench.servers import Server, llama_server, llmd_server
from bench.serving_report import Measured, report
from bench.shapes import SHAPES, Shape
from bench.vocabulary import write_tokenizer

RESULTS = Path(__file__).parent / "results"
SLOTS = 16
CONTEXT_LEN = 1024


@dataclass(frozen=True)
class Workload:
    """A load with its title and the options of ``llmd bench serve`` that make it."""

    title: str
    options: tuple[str, ...]
    num_prompts: int

    def scaled(self, scale: float) -> Workload:
        """The same with fewer requests, or more."""
        return Workload(self.title, self.options, max(1, round(self.num_prompts * scale)))


WORKLOADS = (
    Workload(
        "256 in, 64 out, 16 at once",
        ("--input-len", "256", "--output-len", "64", "--max-concurrency", "16"),
        32,
    ),
    Workload(
        "chats: 128 shared, 64–192 own in, 32–96 out, 16 at once",
        (
            *("--random-prefix-len", "128", "--input-len", "128", "--output-len", "64"),
            *("--random-range-ratio", "0.5", "--max-concurrency", "16"),
        ),
        32,
    ),
    Workload(
        "256 in, 64 out, one at a time",
        ("--input-len", "256", "--output-len", "64", "--max-concurrency", "1"),
        4,
    ),
)
Rounds = list[tuple[dict[str, Any], dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.serving")
    parser.add_argument("shape", nargs="?", default="llama-100m", choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the requests of each load")
    arguments = parser.parse_args()
    shape, threads = SHAPES[arguments.shape], len(os.sched_getaffinity(0))
    model, gguf = prepare(shape)
    workloads = [workload.scaled(arguments.scale) for workload in WORKLOADS]
    waiting = best_waiting(gguf, threads, workloads[0], model)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmd-serving-")))
        ours = stack.enter_context(llmd_server(model, folder, slots=SLOTS, context_len=CONTEXT_LEN))
        peer = stack.enter_context(open_peer(gguf, threads, waiting))
        results = {
            workload.title: interleave(ours, peer, seeds, partial(load, workload, model))
            for workload, seeds in zip(workloads, seeds_of(len(workloads), arguments.rounds), strict=True)
        }
        memory = {server.name: server.resident_bytes() for server in (ours, peer)}
    now = datetime.now(UTC)
    measured = Measured(
        shape=shape.name,
        machine=f"{now:%Y-%m-%d}, {describe()}; {threads} threads each, {arguments.rounds} interleaved rounds.",
        peer_version=peer_version(),
        peer_waiting=waiting,
        results=results,
        memory=memory,
    )
    text = report(measured)
    print(text)
    (RESULTS / f"{now:%Y-%m-%d}-serving-{shape.name}.md").write_text(text)


def prepare(shape: Shape) -> tuple[Path, Path]:
    """The model as a directory with a tokenizer, and as a GGUF file."""
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    write_tokenizer(shape.vocab, directory)
    return directory, make_gguf(directory, "Q8_0", directory.with_name(f"{directory.name}.Q8_0.gguf"))


def open_peer(gguf: Path, threads: int, waiting: str) -> AbstractContextManager[Server]:
    """llama.cpp's server on the model."""
    return llama_server(
        PEER_SERVER, gguf, slots=SLOTS, context_len=CONTEXT_LEN, threads=threads, waiting=waiting
    )


def best_waiting(gguf: Path, threads: int, workload: Workload, model: Path) -> str:
    """How the peer's threads should wait for each other here: it gets the way that serves it best.

    Threads that spin are faster on a machine of their own, and many times slower where anything else wants a processor.
    """
    rates = {}
    for waiting in ("default", "passive"):
        with open_peer(gguf, threads, waiting) as peer:
            rates[waiting] = load(workload, model, peer, 0)["output_throughput"]
    return max(rates, key=rates.__getitem__)


def seeds_of(num_workloads: int, rounds: int) -> list[range]:
    """The seeds of each workload's rounds and of the one before: no prompt comes twice, which a cache would know."""
    return [range(first, first + rounds + 1) for first in range(1, num_workloads * 1000, 1000)]


def interleave(
    ours: Server, peer: Server, seeds: Sequence[int], measure: Callable[[Server, int], dict[str, Any]]
) -> Rounds:
    """A round of (ours, peer) for each seed, the first of which does not count; who goes first changes each time."""
    measured = []
    for number, seed in enumerate(seeds):
        order = (ours, peer) if number % 2 else (peer, ours)
        found = {server.name: measure(server, seed) for server in order}
        measured.append((found[ours.name], found[peer.name]))
        print(f"round {number} of {len(seeds) - 1}", file=sys.stderr)
    return measured[1:]


def load(workload: Workload, model: Path, server: Server, seed: int) -> dict[str, Any]:
    """Put a load on a server; returns the result of ``llmd bench serve``, and ``server_cpu_s`` that the server took."""
    command = [
        *(sys.executable, "-m", "llmd.cli.main", "bench", "serve", "--json", "--base-url", server.url),
        *("--tokenizer", str(model), "--num-prompts", str(workload.num_prompts), "--seed", str(seed)),
        *("--temperature", "0", "--metric-percentiles", "99,100", *workload.options),
    ]
    before_s = server.cpu_s()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    if done.returncode or found["failed"]:
        raise RuntimeError(
            f"{server.name} failed {found.get('failed')} requests: {found.get('error_counts')}"
        )
    return found | {"server_cpu_s": server.cpu_s() - before_s}


if __name__ == "__main__":
    main()
