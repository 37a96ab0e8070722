"""Compares the time to the first token with llama.cpp's: ``python -m bench.starts [SHAPE] [--pairs LIST]``.

``make bench-starts`` builds what it needs first. METHODOLOGY.md says what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.checkpoint import MODELS, checkpoint_directory, write_checkpoint
from bench.cpu_rounds import in_turn
from bench.first_token import Launched
from bench.machine import describe
from bench.peer import peer_version
from bench.publication import publish
from bench.quiet import DisturbedError, QuietRounds
from bench.shapes import SHAPES, Shape
from bench.start_sides import ISAS, LlamaCpp, Llmd, Prompts, StartSide, unload, write_back
from bench.starts_report import OwnStart, PairStarts, Starts, page
from bench.weight_errors import compare_errors, gguf_of

FILE = "file"
"""Instead of a format: llmd runs the peer's GGUF file."""
PAIRS = f"{FILE}:Q4_0,{FILE}:Q4_K_M,{FILE}:Q8_0,q4:Q4_0,q8_wide:Q8_0"
Seconds = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.starts")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument(
        "--pairs", type=read_pairs, default=PAIRS, help=f"FORMAT:TYPE or {FILE}:TYPE (default {PAIRS})"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isa", choices=ISAS, help="limit both sides to an instruction set")
    arguments = parser.parse_args()
    shape, threads = SHAPES[arguments.shape], len(os.sched_getaffinity(0))
    name = f"{shape.name} with {arguments.isa} alone" if arguments.isa else shape.name
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {describe()}; {threads} threads each, {arguments.rounds} interleaved rounds."
    found: list[PairStarts | OwnStart] = []
    disturbed: DisturbedError | None = None
    measured = measure(shape, arguments.pairs, arguments.rounds, threads, arguments.isa)
    try:
        found.extend(measured)  # keeps the results before an error
    except DisturbedError as error:
        disturbed = error
    file = f"starts-{shape.name}-{arguments.isa}" if arguments.isa else f"starts-{shape.name}"
    publish(file, page(name, machine, peer_version(), found), disturbed)


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Parse the pairs of the command line."""
    pairs = [word.partition(":") for word in text.split(",")]
    if not all(ours and kind for ours, _, kind in pairs):
        raise argparse.ArgumentTypeError(f"{text}: write FORMAT:TYPE, such as q4:Q4_0, or {FILE}:TYPE")
    return [(ours, kind) for ours, _, kind in pairs]


def measure(
    shape: Shape, pairs: Sequence[tuple[str, str]], rounds: int, threads: int, isa: str | None = None
) -> Iterator[PairStarts | OwnStart]:
    """Measure the starts of each pair, then those of the daemon without a model."""
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    for number, (ours, kind) in enumerate(pairs):
        file = gguf_of(directory, kind)
        model, quant = (file, None) if ours == FILE else (directory, ours)
        bits = None if quant is None else compare_errors(ours, directory, quant, kind).bits
        with tempfile.TemporaryDirectory(prefix="starts-", dir=MODELS) as folder:
            llmd, peer = Llmd(model, quant, Path(folder), threads, isa), LlamaCpp(file, threads, isa)
            yield PairStarts(ours, kind, bits, list(pair_starts(llmd, peer, rounds)))
            if number == len(pairs) - 1:
                yield own_start(llmd, rounds)


def pair_starts(llmd: Llmd, peer: LlamaCpp, rounds: int) -> Iterator[Starts]:
    """Measure first starts, later starts, and loading in a running daemon."""
    yield taken("first start, command to first token", rounds, first_starts([llmd, peer]))
    yield taken("later start, command to first token", rounds, later_starts([llmd, peer]))
    with llmd.unloaded() as daemon:
        yield taken("load and first token, daemon running", rounds, loads(llmd, daemon, peer))


def taken(title: str, rounds: int, measure_round: Callable[[int], Seconds]) -> Starts:
    """Measure quiet rounds of one kind of start."""
    quiet = QuietRounds()
    found = quiet.take(title, measure_round, rounds)
    return Starts(title, {name: [one[name] for one in found] for name in ("llmd", "llama.cpp")}, quiet.tally)


def first_starts(sides: Sequence[StartSide]) -> Callable[[int], Seconds]:
    """Return a round of starts of servers that have forgotten the model."""
    prompts = Prompts()

    def measure_round(number: int) -> Seconds:
        seconds = {}
        for side in in_turn(sides, number):
            side.forget()
            write_back()
            with side.launch() as server:
                seconds[side.name] = server.first_token_s(prompts.draw())
        return seconds

    return measure_round


def later_starts(sides: Sequence[StartSide]) -> Callable[[int], Seconds]:
    """Return a round of starts with warm caches. In the warm-up round the servers may finish writing them."""
    prompts = Prompts()

    def measure_round(number: int) -> Seconds:
        seconds = {}
        for side in in_turn(sides, number):
            with side.launch() as server:
                seconds[side.name] = server.first_token_s(prompts.draw())
                if number == 0:
                    server.wait_until_idle()
            write_back()
        return seconds

    return measure_round


def loads(llmd: Llmd, daemon: Launched, peer: LlamaCpp) -> Callable[[int], Seconds]:
    """Return a round of loads with a first token, in a running daemon and in the peer's library."""
    prompts = Prompts()

    def of_daemon() -> float:
        daemon.wait_until_idle()
        began = time.perf_counter()
        daemon.ask(prompts.draw())
        seconds = time.perf_counter() - began
        unload(daemon)
        return seconds

    def measure_round(number: int) -> Seconds:
        turns = in_turn([(llmd.name, of_daemon), (peer.name, peer.load_s)], number)
        return {name: turn() for name, turn in turns}

    return measure_round


def own_start(llmd: Llmd, rounds: int) -> OwnStart:
    """Measure the daemon without a model until its port listens."""

    def measure_round(_: int) -> float:
        with llmd.launch_empty() as daemon:
            return daemon.listening_s()

    quiet = QuietRounds()
    return OwnStart(quiet.take("the daemon's own start", measure_round, rounds), quiet.tally)


if __name__ == "__main__":
    main()
