"""llmd and llama.cpp on one random model, in turn: ``python -m bench.side_by_side [SHAPE]``."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.checkpoint import write_checkpoint
from bench.machine import describe
from bench.shapes import SHAPES, Shape
from bench.worker import Measured, Side

ROOT = Path(__file__).parent
MODELS = ROOT.parent / ".bench-models"
PEER_PYTHON = ROOT.parent / ".venv-bench" / "bin" / "python"
RESULTS = ROOT / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.side_by_side")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=64)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    threads = len(os.sched_getaffinity(0))
    with open_llmd(shape) as ours, open_peer(shape, threads) as peer:
        rounds = interleave(ours, peer, shape, arguments.rounds, arguments.prompt, arguments.decode)
        text = report(shape, ours, peer, rounds, arguments.prompt, arguments.decode, threads)
    print(text)
    now = datetime.now(UTC)
    (RESULTS / f"{now:%Y-%m-%d}-side-by-side-{shape.name}.md").write_text(text)


def open_llmd(shape: Shape) -> Side:
    directory = write_checkpoint(shape, MODELS / shape.name)
    return Side("llmd", [sys.executable, "-m", "bench.llmd_side", str(directory), "cpu", "q8"])


def open_peer(shape: Shape, threads: int) -> Side:
    path = MODELS / f"{shape.name}.q8_0.gguf"
    return Side(
        "llama.cpp", [str(PEER_PYTHON), "-m", "bench.llama_cpp_side", shape.name, str(path), str(threads)]
    )


def interleave(
    ours: Side, peer: Side, shape: Shape, rounds: int, prompt_len: int, num_decode: int
) -> list[tuple[Measured, Measured]]:
    """One warm-up, then rounds of (ours, peer) on the same random prompt."""
    measured = []
    for seed in range(rounds + 1):
        prompt = np.random.default_rng(seed).integers(0, shape.vocab, prompt_len).tolist()
        measured.append((ours.measure(prompt, num_decode), peer.measure(prompt, num_decode)))
    return measured[1:]


def report(
    shape: Shape,
    ours: Side,
    peer: Side,
    rounds: list[tuple[Measured, Measured]],
    prompt_len: int,
    num_decode: int,
    threads: int,
) -> str:
    version = subprocess.check_output(
        [str(PEER_PYTHON), "-c", "import llama_cpp; print(llama_cpp.__version__)"], text=True
    ).strip()
    rows = [
        row(f"prefill {prompt_len}", rounds, lambda one: prompt_len / one.prefill_s),
        row(f"decode {num_decode}", rounds, lambda one: num_decode / one.decode_s),
    ]
    return "\n".join(
        [
            f"# {shape.name}: llmd q8 against llama.cpp Q8_0",
            "",
            f"{datetime.now(UTC):%Y-%m-%d}, {describe()}; {threads} threads each, {len(rounds)} interleaved rounds.",
            f"llmd: CPU backend, int8 groups of 64, f16 KV. llama.cpp: llama-cpp-python {version}, Q8_0, flash",
            "attention, f16 KV. Medians of tokens per second; the ratio is the median of the rounds' ratios (min–max).",
            "",
            "| | llmd | llama.cpp | ratio |",
            "|---|---|---|---|",
            *rows,
            "",
            (
                f"Load (warm page cache): llmd {ours.facts['load_s']:.1f} s from bf16, quantising;"
                f" llama.cpp {peer.facts['load_s']:.1f} s from Q8_0."
            ),
            (
                f"Resident after loading: llmd {ours.facts['rss_bytes'] / 2**20:.0f} MiB,"
                f" llama.cpp {peer.facts['rss_bytes'] / 2**20:.0f} MiB."
            ),
            "",
        ]
    )


def row(title: str, rounds: list[tuple[Measured, Measured]], rate: Callable[[Measured], float]) -> str:
    mine = [rate(ours) for ours, _ in rounds]
    theirs = [rate(peer) for _, peer in rounds]
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    return (
        f"| {title} | {statistics.median(mine):.1f} | {statistics.median(theirs):.1f}"
        f" | {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |"
    )


if __name__ == "__main__":
    main()
