"""The page of a card: what was checked, and what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.shapes import Shape


@dataclass(frozen=True)
class Suite:
    """The result of the conformance suite."""

    passed: int
    """Checks that passed."""
    failures: list[str]
    """Checks that failed, and why."""
    seconds: float


@dataclass(frozen=True)
class Round:
    """One round of measurements."""

    read_bytes_per_s: float
    """The fastest that the device's memory was read."""
    one_s: float
    """Seconds of a step with one stream."""
    many_s: float
    """Seconds of a step with sixteen streams."""
    prefill_s: float
    """Seconds from a prompt of 512 tokens to its first token."""


@dataclass(frozen=True)
class Figures:
    """The rounds of one format of weights."""

    name: str
    read_bytes: int
    """Bytes of the weights that a step reads."""
    rounds: list[Round]


def page(date: str, device: str, shape: Shape, suite: Suite, figures: Sequence[Figures]) -> str:
    """Return the page in Markdown."""
    rows = "\n".join(_row(shape, one) for one in figures)
    return f"""# {device}

{date}, `python -m bench.gpu_check`, method in [METHODOLOGY.md](../METHODOLOGY.md#on-a-card).

**Conformance suite**: {suite.passed} checks passed, {len(suite.failures)} failed, in {suite.seconds:.0f} s.

Shape {shape.name} ({shape.layers} layers, {shape.hidden} wide) with random weights, KV in f16; medians of the rounds
(range). The share of read is that of the same round.

| weights | GB a step | read, GB/s | one stream, ms | tokens/s | share of read | 16 streams, ms | tokens/s | 16 : 1 | prompt of 512, ms | TFLOP/s |
|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


def _row(shape: Shape, figures: Figures) -> str:
    rounds, gigabytes = figures.rounds, figures.read_bytes / 1e9
    products = shape.products + shape.head_products / 512
    cells = (
        figures.name,
        f"{gigabytes:.2f}",
        _median([r.read_bytes_per_s / 1e9 for r in rounds], "4.0f"),
        _median([1e3 * r.one_s for r in rounds], "5.3f"),
        _median([1 / r.one_s for r in rounds], "4.0f"),
        _median([100 * figures.read_bytes / r.one_s / r.read_bytes_per_s for r in rounds], "4.1f", " %"),
        _median([1e3 * r.many_s for r in rounds], "5.3f"),
        _median([16 / r.many_s for r in rounds], "4.0f"),
        _median([16 * r.one_s / r.many_s for r in rounds], "4.1f"),
        _median([1e3 * r.prefill_s for r in rounds], "4.1f"),
        _median([2 * 512 * products / r.prefill_s / 1e12 for r in rounds], "3.0f"),
    )
    return f"| {' | '.join(cells)} |"


def _median(values: Sequence[float], form: str, unit: str = "") -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}}{unit} ({low:{form}}–{high:{form}})"
