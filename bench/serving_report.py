"""Formats the result of the serving benchmark as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.quiet import Tally
from bench.weight_errors import WeightErrors, error_table

Rounds = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]

RATES = {
    "output tokens/s": "output_throughput",
    "input + output tokens/s": "total_token_throughput",
}
TIMES = {
    "mean TTFT, ms": "mean_ttft_ms",
    "P99 TTFT, ms": "p99_ttft_ms",
    "mean TPOT, ms": "mean_tpot_ms",
    "P99 ITL, ms": "p99_itl_ms",
    "longest ITL, ms": "p100_itl_ms",
    "mean E2EL, ms": "mean_e2el_ms",
    "processor time of the server, s": "server_cpu_s",
}


@dataclass
class Measured:
    """A complete or partial measurement."""

    shape: str
    machine: str
    peer_version: str
    quant: str
    kind: str
    slots: int
    peer_waiting: str = "default"
    errors: Sequence[WeightErrors] = ()
    results: dict[str, Rounds] = field(default_factory=dict)
    """Rounds by workload."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Counted and discarded rounds by workload."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes by server."""


def report(measured: Measured) -> str:
    """Return the page of a measurement."""
    quant, kind = measured.quant, measured.kind
    lines = [
        f"# {measured.shape} under load: the daemon ({quant}) compared with llama.cpp's server ({kind})",
        "",
        measured.machine,
        f"`llmd serve --quant {quant} --slots {measured.slots}` (CPU backend, f16 KV) and `llama-server` of llama-cpp-python",
        f"{measured.peer_version} ({kind}, f16 KV, `--parallel {measured.slots}`, continuous batching, flash attention, threads that wait",
        f"`{measured.peer_waiting}`, which is the better way here). Load: `llmd bench serve` over HTTP, greedy, answers of full",
        "length. Medians of the rounds. The ratio says how many times better llmd is (rates: ours over theirs; times: theirs",
        "over ours): the median of the rounds' ratios (min–max).",
        "",
        "Both formats, on weights of several kinds; the last are those that are served:",
        "",
        *error_table(quant, kind, measured.errors),
    ]
    for title, rounds in measured.results.items():
        lines += ["", f"## {title}", "", "| | llmd | llama-server | ratio |", "|---|---|---|---|"]
        lines += [row(name, key, rounds, is_rate=True) for name, key in RATES.items()]
        lines += [row(name, key, rounds, is_rate=False) for name, key in TIMES.items()]
        lines += ["", f"{counted(rounds)} {measured.tallies[title]}"]
    sizes = ", ".join(f"{name} {num_bytes / 2**20:.0f} MiB" for name, num_bytes in measured.memory.items())
    return "\n".join(
        [*lines, "", f"Resident after the last round, all processes: {sizes or 'not reached'}.", ""]
    )


def row(name: str, key: str, rounds: Rounds, *, is_rate: bool) -> str:
    """Format a measure of both sides and their ratio."""
    mine, theirs = ([side[key] for side in sides] for sides in zip(*rounds, strict=True))
    ratios = [a / b if is_rate else b / a for a, b in zip(mine, theirs, strict=True)]
    return (
        f"| {name} | {statistics.median(mine):.1f} | {statistics.median(theirs):.1f}"
        f" | {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |"
    )


def counted(rounds: Rounds) -> str:
    """Say how large the rounds were, and how much CPU time the client used."""
    ours, theirs = rounds[0]
    shares = [
        max(side["client_cpu_s"] / side["duration"] for side in sides) for sides in zip(*rounds, strict=True)
    ]
    return (
        f"{ours['num_prompts']} requests a round; first round: llmd {ours['total_input_tokens']} tokens in,"
        f" {ours['total_output_tokens']} out, llama-server {theirs['total_input_tokens']} in,"
        f" {theirs['total_output_tokens']} out. The client took at most {100 * shares[0]:.1f} % of a processor with"
        f" llmd, {100 * shares[1]:.1f} % with llama-server."
    )
