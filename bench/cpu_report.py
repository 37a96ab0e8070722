"""The result of `bench.cpu` as a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from bench.cpu_profiles import Profile, shown
from bench.cpu_quality import Divergence
from bench.cpu_rounds import SHORT, Case, Rounds
from bench.cpu_sides import Start
from bench.shapes import Shape

QUIET = 0.05
"""Share of the processors that others may have had before a page says that it is not to be relied on."""
KV_SHARES = {"f16": 1.0, "int8": 17 / 32}
"""What keys and values take of those in f16, by dtype: a scale of two bytes for 32 of int8."""
OURS, PEER = "llmd", "llama.cpp"


@dataclass(frozen=True)
class Comparison:
    """Speed with an instruction set (None: the best). ``read_bytes`` are those of the matrices that a token reads, ``peaks``
    8-bit integer operations per second, ``others`` the share of the processors that others had.
    """

    isa: str | None
    rounds: Sequence[Rounds]
    peaks: Mapping[str, float]
    read_bytes: Mapping[str, int]
    starts: Mapping[str, Start]
    others: float


@dataclass(frozen=True)
class Quality:
    """Errors of the weights by side, the peer's bytes by type, divergences on the timed model and on the guide."""

    errors: Mapping[str, float]
    types: Mapping[str, int]
    peaked: Mapping[str, Divergence]
    guide: Mapping[str, Divergence]


@dataclass(frozen=True)
class Section:
    """A format of llmd beside a type of llama.cpp."""

    quant: str
    kind: str
    comparisons: Sequence[Comparison]
    quality: Quality


def page(
    shape: Shape,
    profile: Profile,
    warnings: Sequence[str],
    machine: str,
    version: str,
    sections: Sequence[Section],
) -> str:
    """The whole page; METHODOLOGY.md says how to read it."""
    pinned = ", ".join(f"{field.name} {shown(getattr(profile, field.name))}" for field in fields(profile))
    lines = [
        f"# {shape.name} on the CPU: llmd beside llama.cpp",
        "",
        f"{machine}. llama-cpp-python {version}, flash attention, {profile.kv} KV on both sides.",
        f"Profile: {pinned}.",
        *(f"**Not as pinned:** {warning}." for warning in warnings),
        "",
        "Medians of tokens per second of all sequences together. The ratio is the median of the rounds' ratios to the faster build",
        "(min–max). Shares are of limits measured between the rounds or after them: of memory read, of 8-bit integer products; llmd /",
        "faster build.",
    ]
    for section in sections:
        for comparison in section.comparisons:
            lines += ["", *compared(shape, section, comparison, KV_SHARES[profile.kv])]
        lines += ["", *quality(section)]
    return "\n".join([*lines, ""])


def compared(shape: Shape, section: Section, found: Comparison, kv_share: float) -> Iterator[str]:
    """Speed, starts and memory."""
    names = list(found.rounds[0].rates)
    sets = "" if found.isa is None else f", {found.isa} alone"
    yield f"## {section.quant} beside {section.kind}{sets}"
    yield ""
    yield f"| | {' | '.join(names)} | ratio | of read | {' | '.join(f'of {name}' for name in found.peaks)} |"
    yield "|---" * (len(names) + 3 + len(found.peaks)) + "|"
    for rounds in found.rounds:
        yield row(shape, found, rounds, kv_share)
    yield ""
    matrices = ", ".join(
        f"{name} {count / 1e6:.0f} MB ({8 * count / (shape.products + shape.head_products):.2f} bits a weight)"
        for name, count in found.read_bytes.items()
    )
    reads = statistics.median(rate for rounds in found.rounds for rate in rounds.reads)
    peaks = ", ".join(f"{name} {rate / 1e12:.2f}" for name, rate in found.peaks.items())
    yield f"Matrices that each token reads: {matrices}. Memory read: {reads / 1e9:.1f} GB/s. Integers, TOPS: {peaks}."
    if found.others > QUIET:
        yield f"**Not quiet:** other processes had {100 * found.others:.0f} % of the processors."
    yield ""
    yield "| start | load, s | first token, s | resident, MB | file pages, MB | KV pool, MB |"
    yield "|---|---|---|---|---|---|"
    for name, start in found.starts.items():
        sizes = (start.resident["anonymous"], start.resident["file"], start.kv_bytes)
        memory = " | ".join("–" if size is None else f"{size / 1e6:.0f}" for size in sizes)
        yield f"| {name} | {start.load_s:.2f} | {start.first_token_s:.2f} | {memory} |"


def row(shape: Shape, found: Comparison, rounds: Rounds, kv_share: float = 1.0) -> str:
    """One case: rates, ratio, shares of the limits."""
    names = list(rounds.rates)
    medians = {name: statistics.median(rates) for name, rates in rounds.rates.items()}
    best = max(names[1:], key=medians.__getitem__)
    ratios = sorted(a / b for a, b in zip(rounds.rates[names[0]], rounds.rates[best], strict=True))
    spread = f" ({ratios[0]:.2f}–{ratios[-1]:.2f})" if len(ratios) > 1 else ""
    pair = [(OURS, medians[names[0]]), (PEER, medians[best])]
    cells = [
        title(rounds.case),
        *(f"{medians[name]:.1f}" for name in names),
        f"**{statistics.median(ratios):.2f}**{spread}",
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


def title(case: Case) -> str:
    """What is timed."""
    if case.kind == "prefill":
        return f"prefill {case.depth}"
    if case.depth == SHORT:
        return f"decode, {case.batch} at once"
    return f"decode after {case.depth}"


def products(shape: Shape, case: Case) -> int:
    """Products of a token with weights; those of the head count where each token's logits are wanted."""
    return shape.products + (shape.head_products if case.kind == "decode" else 0)


def read_share(
    shape: Shape, found: Comparison, rounds: Rounds, side: str, rate: float, kv_share: float = 1.0
) -> float:
    """What a side reads per second, weights once for all sequences and the keys and values of each, of what can be read."""
    cached = rounds.case.batch * rounds.case.depth * shape.kv_token_bytes * kv_share
    steps = rate / rounds.case.batch
    return steps * (found.read_bytes[side] + cached) / statistics.median(rounds.reads)


def quality(section: Section) -> Iterator[str]:
    """What the formats cost."""
    found = section.quality
    names = {OURS: section.quant, PEER: section.kind}
    errors = ", ".join(f"{name} {names[name]} {error:.2e}" for name, error in found.errors.items())
    types = ", ".join(f"{name} {count / 1e6:.0f} MB" for name, count in found.types.items())
    yield f"### Quality of {section.quant} and {section.kind}"
    yield ""
    yield f"Error of the timed weights over the weights, both squared (NMSE): {errors}. {section.kind} is {types}."
    yield ""
    yield "| KL from llmd unquantised, nats | this model | same best token | guide | same best token |"
    yield "|---|---|---|---|---|"
    for name, guide in found.guide.items():
        here = found.peaked.get(name)
        cells = "– | –" if here is None else f"{here.kl:.2e} | {100 * here.same_best:.1f} %"
        yield f"| {name} | {cells} | {guide.kl:.2e} | {100 * guide.same_best:.1f} % |"
    entropies = (next(iter(each.values())).entropy for each in (found.peaked, found.guide))
    yield ""
    yield "Entropy of a token unquantised: this model {:.1f}, guide {:.1f} nats.".format(*entropies)
