"""Formats the result of `bench.second_peer` as a page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.cpu_report import OURS
from bench.cpu_rounds import Rounds, title
from bench.quiet import Tally


def page(
    shape: str, isa: str | None, machine: str, version: str, found: Sequence[Rounds], tally: Tally
) -> str:
    """Return the whole page; METHODOLOGY.md explains it."""
    limited = f", {isa} alone" if isa else ""
    lines = [
        f"# {shape} over HTTP: llmd compared with a fork of llama.cpp{limited}",
        "",
        f"{machine}. The fork: version {version}, flash attention, f16 KV on both sides.",
        "",
        "Medians of tokens per second of all answers together, and the median of the rounds' ratios (min–max) to the fork's",
        "fastest column of that line.",
    ]
    if found:
        lines += ["", *rates(found), "", *ratios(found), "", f"Of all cases together, {tally}"]
    return "\n".join([*lines, ""])


def rates(found: Sequence[Rounds]) -> list[str]:
    """Return the table of medians: a line for each case, a column for each side."""
    names = list(found[0].rates)
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for rounds in found:
        medians = (f"{statistics.median(rounds.rates[name]):.1f}" for name in names)
        lines.append(f"| {title(rounds.case)} | {' | '.join(medians)} |")
    return lines


def ratios(found: Sequence[Rounds]) -> list[str]:
    """Return the table of ratios: a line for each case, a column for each format of llmd."""
    mine = [name for name in found[0].rates if name.startswith(OURS)]
    lines = [f"| | fastest | {' | '.join(mine)} |", "|---" * (len(mine) + 2) + "|"]
    for rounds in found:
        fastest = fastest_peer(rounds)
        cells = (ratio(rounds.rates[name], rounds.rates[fastest]) for name in mine)
        lines.append(f"| {title(rounds.case)} | {fastest} | {' | '.join(cells)} |")
    return lines


def fastest_peer(rounds: Rounds) -> str:
    """Return the side of the fork with the highest median."""
    peers = [name for name in rounds.rates if not name.startswith(OURS)]
    return max(peers, key=lambda name: statistics.median(rounds.rates[name]))


def ratio(ours: Sequence[float], peer: Sequence[float]) -> str:
    """Return the median of the rounds' ratios with their range."""
    found = sorted(a / b for a, b in zip(ours, peer, strict=True))
    return f"**{statistics.median(found):.2f}** ({found[0]:.2f}–{found[-1]:.2f})"
