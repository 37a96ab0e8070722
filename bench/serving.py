"""Compares the daemon and llama.cpp's server under the same load: ``python -m bench.serving [SHAPE]``.

``make bench-serve`` builds what it needs first. Both servers run throughout, and only one gets requests at a
time. The load is ``llmd bench serve``, in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.checkpoint import checkpoint_directory, write_checkpoint
from bench.machine import describe
from bench.peer import PEER_SERVER, peer_version
from bench.publication import publish
from bench.quiet import DisturbedError, QuietRounds
from bench.servers import Server, llama_server, llmd_server
from bench.serving_report import Measured, report
from bench.shapes import SHAPES, Shape
from bench.weight_errors import gguf_of, measure_errors

SLOTS = 16
CONTEXT_LEN = 1024


@dataclass(frozen=True)
class Workload:
    """A load: its title and its options of ``llmd bench serve``."""

    title: str
    options: tuple[str, ...]
    num_prompts: int

    def scaled(self, scale: float) -> Workload:
        """Return the workload with a scaled number of requests."""
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
QUANT, KIND = "q8_g32", "Q8_0"
"""The same format under two names: 8-bit weights with a float16 scale for 32, 8.5 bits per weight, same
error.
"""
Load = Callable[[Server, int], dict[str, Any]]
"""Runs the load of a seed on a server and returns the result."""
Rounds = list[tuple[dict[str, Any], dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.serving")
    parser.add_argument("shape", nargs="?", default="llama-100m", choices=SHAPES)
    parser.add_argument(
        "--quant", default=QUANT, help=f"llmd's format, compared with {KIND} (default {QUANT})"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the requests of each load")
    arguments = parser.parse_args()
    shape, quant, rounds = SHAPES[arguments.shape], arguments.quant, arguments.rounds
    threads = len(os.sched_getaffinity(0))
    workloads = [workload.scaled(arguments.scale) for workload in WORKLOADS]
    found = Measured(
        shape=shape.name,
        machine=f"{datetime.now(UTC):%Y-%m-%d}, {describe()}; {threads} threads each, {rounds} interleaved rounds.",
        peer_version=peer_version(),
        quant=quant,
        kind=KIND,
        slots=SLOTS,
    )
    disturbed: DisturbedError | None = None
    try:
        measure(found, shape, workloads, threads, rounds)
    except DisturbedError as error:
        disturbed = error
    formats = "" if quant == QUANT else f"-{quant}"
    publish(f"serving-{shape.name}{formats}", report(found), disturbed)


def measure(found: Measured, shape: Shape, workloads: Sequence[Workload], threads: int, rounds: int) -> None:
    """Run the measurement and fill in ``found``.

    Raises:
        DisturbedError: other processes disturbed too many rounds; ``found`` has the results so far.
    """
    model, gguf = prepare(shape)
    found.errors = measure_errors(found.quant, KIND, model)
    first, *seeds = seeds_of(1 + len(workloads))
    found.peer_waiting = best_waiting(gguf, threads, partial(load, workloads[0], model), first)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmd-serving-")))
        ours = stack.enter_context(
            llmd_server(model, folder, quant=found.quant, slots=SLOTS, context_len=CONTEXT_LEN)
        )
        peer = stack.enter_context(open_peer(gguf, threads, found.peer_waiting))
        for workload, own_seeds in zip(workloads, seeds, strict=True):
            quiet, put = QuietRounds(), partial(load, workload, model)
            results = interleave(workload.title, ours, peer, own_seeds, put, quiet, rounds)
            found.results[workload.title] = results
            found.tallies[workload.title] = quiet.tally
        found.memory = {server.name: server.resident_bytes() for server in (ours, peer)}


def prepare(shape: Shape) -> tuple[Path, Path]:
    """Return the model as a directory and as a GGUF file."""
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    return directory, gguf_of(directory, KIND)


def open_peer(gguf: Path, threads: int, waiting: str) -> AbstractContextManager[Server]:
    """Run llama.cpp's server on the model."""
    return llama_server(
        PEER_SERVER, gguf, slots=SLOTS, context_len=CONTEXT_LEN, threads=threads, waiting=waiting
    )


def best_waiting(gguf: Path, threads: int, put: Load, seeds: Iterator[int]) -> str:
    """Return the wait policy with which the peer is fastest on this machine.

    Spinning threads are faster on an idle machine, and many times slower if anything else needs a CPU, so a
    disturbed trial does not count.
    """
    rates = {}
    for waiting in ("default", "passive"):
        with open_peer(gguf, threads, waiting) as peer:

            def trial(_: int, peer: Server = peer) -> float:
                rate: float = put(peer, next(seeds))["output_throughput"]
                return rate

            (rates[waiting],) = QuietRounds().take(f"{waiting} waiting", trial, 1, warm_up=False)
    return max(rates, key=rates.__getitem__)


def seeds_of(num_loads: int) -> list[Iterator[int]]:
    """Return the seeds of each load's rounds. They are all different, so that no prompt is in a cache."""
    return [iter(range(first, first + 1000)) for first in range(0, num_loads * 1000, 1000)]


def interleave(
    title: str, ours: Server, peer: Server, seeds: Iterator[int], put: Load, quiet: QuietRounds, rounds: int
) -> Rounds:
    """Return quiet rounds of (ours, peer), each with its own seed. The order alternates."""

    def measure(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        seed = next(seeds)
        order = (ours, peer) if number % 2 else (peer, ours)
        found = {server.name: put(server, seed) for server in order}
        print(f"{title}: round {number} of {rounds}", file=sys.stderr)
        return found[ours.name], found[peer.name]

    return quiet.take(title, measure, rounds)


def load(workload: Workload, model: Path, server: Server, seed: int) -> dict[str, Any]:
    """Run a load; return the result of ``llmd bench serve`` and the server's CPU time, ``server_cpu_s``."""
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
