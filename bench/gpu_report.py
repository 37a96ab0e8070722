"""The page of a card: what was checked, and what was measured."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from bench.gpu_engine import Answered
from bench.shapes import Shape

NOT_A_MEASUREMENT = """**Not a measurement.** The kernels ran on the processors of this machine, thread by thread, in a small
shape: the page shows only that each check and each figure can be computed.

"""


@dataclass(frozen=True)
class Suite:
    """The result of the conformance suite."""

    passed: int
    """Checks that passed."""
    failures: list[str]
    """Checks that failed, and why."""
    seconds: float


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    shape: Shape
    streams: int = 16
    """Sequences that decode together, besides one alone."""
    prompt: int = 512
    """Tokens of a prompt."""
    answer: int = 128
    """Tokens of an answer through the engine."""
    steps: int = 100
    """Steps that decode without the engine."""
    context: int = 4096
    """Tokens that a sequence has room for."""
    read_s: float = 0.5
    """Seconds for which memory is read."""
    is_real: bool = True
    """Whether a card is measured, rather than the kernels run on the host."""


@dataclass(frozen=True)
class Round:
    """One round of measurements."""

    read_bytes_per_s: float
    """The fastest that the device's memory was read."""
    one_s: float
    """Seconds of a step with one stream."""
    many_s: float
    """Seconds of a step with all streams."""
    prefill_s: float
    """Seconds from a prompt to its first token."""
    engine_one: Answered
    """One request through the engine."""
    engine_many: Answered
    """As many requests as streams through the engine."""
    host_one: float | None
    """Share of a step through the engine in which the card does not compute, with one stream; None: the card
    does not keep the times of its steps."""
    host_many: float | None
    """The same with all streams."""


@dataclass(frozen=True)
class Figures:
    """The rounds of one format of weights."""

    name: str
    read_bytes: int
    """Bytes of the weights that a step reads."""
    rounds: list[Round]


def page(
    date: str,
    device: str,
    sizes: Sizes,
    suite: Suite,
    figures: Sequence[Figures],
    cublas_s: float | None,
    problem: str = "",
) -> str:
    """Return the page in Markdown.

    ``cublas_s`` is how long cuBLAS takes for the products of a prompt; None: it was not measured, because of
    ``problem``.
    """
    shape, many, prompt = sizes.shape, sizes.streams, sizes.prompt
    alone = "\n".join(_row(sizes, one) for one in figures)
    engine = "\n".join(_engine_row(one, cublas_s) for one in figures)
    peer = textwrap.fill(_peer(cublas_s, sizes, problem), 120)
    return f"""# {device}

{"" if sizes.is_real else NOT_A_MEASUREMENT}{date}, `python -m bench.gpu_check`, method in [METHODOLOGY.md](../METHODOLOGY.md#on-a-card).

**Conformance suite**: {suite.passed} checks passed, {len(suite.failures)} failed, in {suite.seconds:.0f} s.

Shape {shape.name} (layers: {shape.layers}, width: {shape.hidden}) with random weights, KV in f16; medians of the
rounds (range). The share of read is that of the same round.

| weights | GB a step | read, GB/s | one stream, ms | tokens/s | share of read | {many} streams, ms | tokens/s | {many} : 1 | prompt of {prompt}, ms | TFLOP/s |
|---|---|---|---|---|---|---|---|---|---|---|
{alone}

Through the engine, without HTTP: prompts of {prompt} tokens, answers of {sizes.answer}. Requests begin together. The
share of the host is the part of a decode step in which the card does not compute, in a run that is traced.

{peer}

| weights | first token, ms | a token, ms | host | first of {many}, ms | a token of {many}, ms | ratio of tokens | host | prompt : cuBLAS |
|---|---|---|---|---|---|---|---|---|
{engine}
"""


def _peer(cublas_s: float | None, sizes: Sizes, problem: str) -> str:
    if cublas_s is None:
        return f"cuBLAS was not measured: {problem}."
    rate = 2 * sizes.prompt * _products(sizes) / cublas_s / 1e12
    return (
        f"cuBLAS takes {1e3 * cublas_s:.1f} ms for the matrix products of the prompt in float16 ({rate:.0f} TFLOP/s);"
        " its share is of the whole prompt, with attention."
    )


def _products(sizes: Sizes) -> float:
    """Return the weights that each token of a prompt is multiplied by; the head multiplies one of them."""
    return sizes.shape.products + sizes.shape.head_products / sizes.prompt


def _row(sizes: Sizes, figures: Figures) -> str:
    rounds, gigabytes, many = figures.rounds, figures.read_bytes / 1e9, sizes.streams
    cells = (
        figures.name,
        f"{gigabytes:.2f}",
        _median([r.read_bytes_per_s / 1e9 for r in rounds], "4.0f"),
        _median([1e3 * r.one_s for r in rounds], "5.3f"),
        _median([1 / r.one_s for r in rounds], "4.0f"),
        _median([100 * figures.read_bytes / r.one_s / r.read_bytes_per_s for r in rounds], "4.1f", " %"),
        _median([1e3 * r.many_s for r in rounds], "5.3f"),
        _median([many / r.many_s for r in rounds], "4.0f"),
        _median([many * r.one_s / r.many_s for r in rounds], "4.1f"),
        _median([1e3 * r.prefill_s for r in rounds], "4.1f"),
        _median([2 * sizes.prompt * _products(sizes) / r.prefill_s / 1e12 for r in rounds], "3.0f"),
    )
    return f"| {' | '.join(cells)} |"


def _engine_row(figures: Figures, cublas_s: float | None) -> str:
    rounds = figures.rounds
    cells = (
        figures.name,
        _median([1e3 * r.engine_one.first_s for r in rounds], "4.1f"),
        _median([1e3 * r.engine_one.token_s for r in rounds], "5.3f"),
        _host_share([r.host_one for r in rounds]),
        _median([1e3 * r.engine_many.first_s for r in rounds], "4.1f"),
        _median([1e3 * r.engine_many.token_s for r in rounds], "5.3f"),
        _median([r.engine_many.token_s / r.engine_one.token_s for r in rounds], "4.2f"),
        _host_share([r.host_many for r in rounds]),
        "" if cublas_s is None else _median([100 * cublas_s / r.prefill_s for r in rounds], "3.0f", " %"),
    )
    return f"| {' | '.join(cells)} |"


def _host_share(shares: Sequence[float | None]) -> str:
    known = [100 * share for share in shares if share is not None]
    return _median(known, "3.1f", " %") if known else "not measured"


def _median(values: Sequence[float], form: str, unit: str = "") -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}}{unit} ({low:{form}}–{high:{form}})"
