"""Formats the result of `bench.starts` as a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.quiet import Tally


@dataclass(frozen=True)
class Starts:
    """Seconds of one kind of start by side, in each counted round."""

    title: str
    seconds: Mapping[str, Sequence[float]]
    tally: Tally


@dataclass(frozen=True)
class PairStarts:
    """The starts of llmd and of llama.cpp."""

    ours: str
    """The format that llmd quantises to, or the peer's file."""
    kind: str
    """The type of llama.cpp."""
    bits: Mapping[str, float] | None
    """Bits per weight by side; None for the same file."""
    starts: Sequence[Starts]


@dataclass(frozen=True)
class OwnStart:
    """Seconds until the daemon listens, without a model, in each counted round."""

    seconds: Sequence[float]
    tally: Tally


def page(shape: str, machine: str, peer_version: str, found: Sequence[PairStarts | OwnStart]) -> str:
    """Return the whole page; METHODOLOGY.md explains it."""
    lines = [
        f"# {shape}: starts of llmd compared with llama.cpp",
        "",
        machine,
        f"`llmd serve` (CPU backend) and `llama-server` of llama-cpp-python {peer_version} (flash attention, no warm-up pass), one slot",
        "of 1024 tokens each. Median seconds of the rounds that count. The ratio is llmd's time over llama.cpp's, the median of the",
        "rounds' ratios (min–max): above 1 llmd takes longer.",
    ]
    for one in found:
        lines += ["", *(pair_lines(one) if isinstance(one, PairStarts) else own_lines(one))]
    return "\n".join([*lines, ""])


def pair_lines(pair: PairStarts) -> Iterator[str]:
    """Yield the section of a pair."""
    yield f"## {heading(pair)}"
    yield ""
    yield "| | llmd, s | llama.cpp, s | ratio | rounds thrown out |"
    yield "|---|---|---|---|---|"
    for starts in pair.starts:
        mine, theirs = starts.seconds["llmd"], starts.seconds["llama.cpp"]
        ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
        yield (
            f"| {starts.title} | {statistics.median(mine):.2f} | {statistics.median(theirs):.2f}"
            f" | **{statistics.median(ratios):.2f}** ({min(ratios):.2f}–{max(ratios):.2f})"
            f" | {thrown_out(starts.tally)} |"
        )


def heading(pair: PairStarts) -> str:
    """Return the heading of a pair: what each side starts from."""
    if pair.bits is None:
        return f"The same GGUF file in {pair.kind}"
    mine, theirs = pair.bits.values()
    ours = f"{pair.ours} ({mine:.2f} bits a weight) from a checkpoint"
    return f"{ours}, compared with a GGUF file in {pair.kind} ({theirs:.2f})"


def own_lines(found: OwnStart) -> Iterator[str]:
    """Yield the section of the daemon without a model."""
    yield "## The daemon's own start"
    yield ""
    yield (
        f"`llmd serve` without a model listens after {statistics.median(found.seconds):.2f} s"
        f" ({min(found.seconds):.2f}–{max(found.seconds):.2f}); rounds thrown out: {thrown_out(found.tally)}."
    )


def thrown_out(tally: Tally) -> str:
    """Format the number of discarded rounds, of all."""
    return f"{len(tally.thrown_out)} of {len(tally.thrown_out) + len(tally.counted)}"
