"""Formats the result of `bench.cpu` as a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from bench.cpu_profiles import Profile, shown
from bench.cpu_quality_report import Quality, quality
from bench.cpu_rounds import Case, Rounds, title
from bench.cpu_sides import Start
from bench.quiet import Tally
from bench.reads import Reads
from bench.shapes import Shape

KV_SHARES = {"f16": 1.0, "int8": 17 / 32}
"""Size of the KV cache relative to f16, by dtype. int8 has a two-byte scale for 32 values."""
OURS, PEER = "llmd", "llama.cpp"


@dataclass(frozen=True)
class Comparison:
    """Speed with one instruction set."""

    isa: str | None
    """None: the best."""
    rounds: Sequence[Rounds]
    peaks: Mapping[str, float]
    """8-bit integer operations per second, by instruction set."""
    reads: Mapping[str, Reads]
    """What a step reads of the matrices, by side."""
    starts: Mapping[str, Start]
    tally: Tally


@dataclass(frozen=True)
class BesideWork:
    """Speed while another process keeps a CPU busy."""

    rounds: Sequence[Rounds]
    tally: Tally


@dataclass(frozen=True)
class Section:
    """The comparison of a format of llmd with a type of llama.cpp."""

    quant: str
    kind: str
    comparisons: Sequence[Comparison]
    quality: Quality
    beside: BesideWork | None = None


def page(
    shape: Shape,
    profile: Profile,
    warnings: Sequence[str],
    machine: str,
    version: str,
    sections: Sequence[Section],
) -> str:
    """Return the whole page; METHODOLOGY.md explains it."""
    pinned = ", ".join(f"{field.name} {shown(getattr(profile, field.name))}" for field in fields(profile))
    lines = [
        f"# {shape.name} on the CPU: llmd compared with llama.cpp",
        "",
        f"{machine}. llama-cpp-python {version}, flash attention, {profile.kv} KV on both sides.",
        f"Profile: {pinned}.",
        *(f"**Not as pinned:** {warning}." for warning in warnings),
        "",
        "Medians of tokens per second of all sequences together. The ratio is the median of the rounds' ratios to the faster build",
        "(min–max). Shares are of limits measured before each round or after all: of memory read, of 8-bit integer products; llmd /",
        "faster build.",
    ]
    for section in sections:
        for comparison in section.comparisons:
            lines += ["", *compared(shape, section, comparison, KV_SHARES[profile.kv])]
        lines += ["", *quality(section.quant, section.kind, section.quality)]
        if section.beside is not None:
            lines += ["", *beside_work(section, section.beside)]
    return "\n".join([*lines, ""])


def compared(shape: Shape, section: Section, found: Comparison, kv_share: float) -> Iterator[str]:
    """Yield the lines on speed, starts and memory."""
    names = list(found.rounds[0].rates)
    sets = "" if found.isa is None else f", {found.isa} alone"
    yield f"## {section.quant} compared with {section.kind}{sets}"
    yield ""
    yield f"| | {' | '.join(names)} | ratio | of read | {' | '.join(f'of {name}' for name in found.peaks)} |"
    yield "|---" * (len(names) + 3 + len(found.peaks)) + "|"
    for rounds in found.rounds:
        yield row(shape, found, rounds, kv_share)
    yield ""
    matrices = ", ".join(
        f"{name} {reads.of(1) / 1e6:.0f} MB "
        f"({8 * reads.of(1) / (shape.products + shape.head_products):.2f} bits a weight)"
        for name, reads in found.reads.items()
    )
    read = statistics.median(rate for rounds in found.rounds for rate in rounds.reads)
    peaks = ", ".join(f"{name} {rate / 1e12:.2f}" for name, rate in found.peaks.items())
    yield f"Matrices that each token reads: {matrices}. Memory read: {read / 1e9:.1f} GB/s. Integers, TOPS: {peaks}."
    yield f"Of all cases and starts together, {found.tally}"
    yield ""
    yield "| start | load, s | first token, s | resident, MB | file pages, MB | KV pool, MB |"
    yield "|---|---|---|---|---|---|"
    for name, start in found.starts.items():
        sizes = (start.resident["anonymous"], start.resident["file"], start.kv_bytes)
        memory = " | ".join("–" if size is None else f"{size / 1e6:.0f}" for size in sizes)
        yield f"| {name} | {start.load_s:.2f} | {start.first_token_s:.2f} | {memory} |"


def row(shape: Shape, found: Comparison, rounds: Rounds, kv_share: float = 1.0) -> str:
    """Format one case: rates, ratio, shares of the limits."""
    medians, best = compared_rates(rounds)
    ours, *_ = medians
    pair = [(OURS, medians[ours]), (PEER, medians[best])]
    cells = [
        *rates_and_ratio(rounds),
        "–"
        if rounds.case.kind == "prefill"
        else " / ".join(
            f"{read_share(shape, found, rounds, side, rate, kv_share):.2f}" for side, rate in pair
        ),
        *(
            " / ".join(f"{2 * products(shape, rounds.case) * rate / peak:.2f}" for _, rate in pair)
            for peak in found.peaks.values()
        ),
    ]
    return f"| {' | '.join(cells)} |"


def compared_rates(rounds: Rounds) -> tuple[dict[str, float], str]:
    """Return the medians by side, and the name of the peer's fastest build."""
    medians = {name: statistics.median(rates) for name, rates in rounds.rates.items()}
    _, *peers = medians
    return medians, max(peers, key=medians.__getitem__)


def rates_and_ratio(rounds: Rounds) -> list[str]:
    """Return the cells of a row: the case, the median of each side, the ratio to the peer's best with its
    range.
    """
    medians, best = compared_rates(rounds)
    ours, *_ = medians
    ratios = sorted(a / b for a, b in zip(rounds.rates[ours], rounds.rates[best], strict=True))
    spread = f" ({ratios[0]:.2f}–{ratios[-1]:.2f})" if len(ratios) > 1 else ""
    rates = (f"{median:.1f}" for median in medians.values())
    return [title(rounds.case), *rates, f"**{statistics.median(ratios):.2f}**{spread}"]


def beside_work(section: Section, found: BesideWork) -> Iterator[str]:
    """Yield the lines on both sides next to other work, in a separate table: it does not measure speed."""
    names = list(found.rounds[0].rates)
    yield f"### Robustness of {section.quant} and {section.kind} next to other work"
    yield ""
    yield "Another process, started for this, keeps one processor busy. These ratios say what a busy machine costs each side, not how"
    yield "fast it is; they stand in no other table. `passive`: llama.cpp's threads wait for each other without spinning."
    yield ""
    yield f"| | {' | '.join(names)} | ratio |"
    yield "|---" * (len(names) + 2) + "|"
    for rounds in found.rounds:
        yield f"| {' | '.join(rates_and_ratio(rounds))} |"
    yield ""
    yield f"Of both cases together, {found.tally}"


def products(shape: Shape, case: Case) -> int:
    """Return the multiplications per token; those of the head count if each token needs logits."""
    return shape.products + (shape.head_products if case.kind == "decode" else 0)


def read_share(
    shape: Shape, found: Comparison, rounds: Rounds, side: str, rate: float, kv_share: float = 1.0
) -> float:
    """Return the share of the read bandwidth that a side uses: the weights once, the KV cache and the states
    of each sequence.
    """
    batch = rounds.case.batch
    kept = batch * (rounds.case.depth * shape.kv_token_bytes * kv_share + shape.state_bytes)
    steps = rate / batch
    return steps * (found.reads[side].of(batch) + kept) / statistics.median(rounds.reads)
