"""Compares how fast experts of several formats are read: ``python -m bench.expert_rates [--isa ISA]``.

For each shape of a mixture, a stack of layers that only have a router and experts, with random weights in
each format. Steps of the formats take turns on the same rows. A rate is the bytes of the experts that some
row of a step uses, over the seconds of the step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.decode_bandwidth import warm_up
from bench.machine import describe
from bench.quiet import QuietRounds
from llmd.api import (
    HIDDEN,
    Experts,
    Format,
    HostHidden,
    ModelPlan,
    Part,
    Router,
    StageLimits,
    Step,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.models.lowering import lower
from llmd.profiling.repeated_source import RepeatedSource
from llmd_backend_cpu.device import CpuDevice

RESULTS = Path(__file__).parent / "results"
THREADS = 2
MOST_ROWS = 16
ROWS = (1, 2, 4, 8, 16)
ROUNDS = 41
LAYERS = 3


@dataclass(frozen=True)
class ExpertShape:
    """The experts of a layer, and the formats that are compared with the first of them."""

    name: str
    hidden: int
    inner: int
    experts: int
    used: int
    formats: tuple[Format, ...]

    def ops(self, layer: int) -> tuple[Router, Experts]:
        """Return the ops of a layer, whose outputs no other op reads."""

        def stack(name: str, rows: int, cols: int) -> TensorRef:
            return TensorRef(f"{layer}.{name}", (self.experts, rows, cols), is_stack=True)

        router = TensorRef(router_name(layer), (self.experts, self.hidden))
        gate, up = (stack(name, self.inner, self.hidden) for name in ("gate", "up"))
        down = stack("down", self.hidden, self.inner)
        routes = f"routes{layer}"
        return (
            Router(HIDDEN, routes, router, self.used),
            Experts(HIDDEN, routes, f"out{layer}", gate, up, down, "silu", self.used),
        )

    def plan(self) -> ModelPlan:
        """Return the layers, between two parts that are not computed."""
        ops = tuple(op for layer in range(LAYERS) for op in self.ops(layer))
        parts = (Part("before", "ffn", 0, ()), Part("experts", "ffn", 0, ops), Part("after", "ffn", 0, ()))
        return ModelPlan("experts", self.hidden, 1, MOST_ROWS, MOST_ROWS, (), parts)


SHAPES = (
    ExpertShape("qwen3-a3b", 2048, 768, 128, 8, ("q4", "mxfp4")),
    ExpertShape("gpt-oss-20b", 2880, 2880, 32, 4, ("q4_g32", "mxfp4")),
)


def router_name(layer: int) -> str:
    """Return the name of a router's matrix."""
    return f"{layer}.router"


class Source(RepeatedSource):
    """Random weights; routers have no rows twice, which would choose the same experts."""

    def __init__(self, shape: ExpertShape) -> None:
        super().__init__()
        draw = np.random.default_rng(0)
        size = (LAYERS, shape.experts, shape.hidden)
        self.routers: NDArray[np.float32] = draw.standard_normal(size, np.float32)
        self._matrices = {router_name(layer): self.routers[layer] for layer in range(LAYERS)}

    def read(self, weight: Weight) -> WeightData:
        values = self._matrices.get(weight.ref.name)
        return super().read(weight) if values is None else WeightData("f32", values)


class Layers:
    """The layers of a shape in one format."""

    def __init__(self, shape: ExpertShape, source: Source, name: Format, isa: str | None) -> None:
        self.device = CpuDevice(isa, THREADS)

        def format_of(kind: str, _: TensorRef) -> Format:
            return name if kind == "experts" else "f32"

        program = lower(shape.plan(), 1, 2, format_of=format_of)
        weights = self.device.load(program, source, lambda _done, _total: None)
        self._stage = weights.stage({}, StageLimits(MOST_ROWS, MOST_ROWS, MOST_ROWS))
        stacks = [weight for weight in program.weights if weight.format == name]
        self.expert_bytes = sum(weight.num_bytes for weight in stacks) / (LAYERS * shape.experts)

    def seconds(self, rows: NDArray[np.float32]) -> float:
        """Return the seconds of a step."""
        count = len(rows)
        step = Step(
            token_ids=np.zeros(count, np.int32),
            positions=np.zeros(count, np.int32),
            row_offsets=np.arange(count + 1, dtype=np.int32),
            block_tables=(),
            copies=np.zeros((0, 3), np.int32),
        )
        began = time.perf_counter()
        ticket = self._stage.submit(step, HostHidden(rows), None)
        took = time.perf_counter() - began
        self._stage.release(ticket)
        return took


def used_experts(routers: NDArray[np.float32], rows: NDArray[np.float32], used: int) -> int:
    """Return how many experts of all layers some row uses."""
    products = np.einsum("leh,rh->lre", routers, rows)
    chosen = np.argsort(-products, axis=-1)[..., :used]
    return sum(len(np.unique(layer)) for layer in chosen)


def compare(shape: ExpertShape, isa: str | None, quiet: QuietRounds) -> list[str]:
    """Return the lines of a table."""
    source = Source(shape)
    layers = [Layers(shape, source, name, isa) for name in shape.formats]
    draw = np.random.default_rng(1)

    def measure(count: int, number: int) -> list[float]:
        rows = draw.standard_normal((count, shape.hidden), np.float32)
        experts = used_experts(source.routers, rows, shape.used)
        order = [(place + number) % len(layers) for place in range(len(layers))]
        rates = {place: experts * layers[place].expert_bytes / layers[place].seconds(rows) for place in order}
        return [rates[place] for place in range(len(layers))]

    many = draw.standard_normal((MOST_ROWS, shape.hidden), np.float32)
    for one in layers:
        warm_up(partial(one.seconds, many))
    first, *others = shape.formats
    lines = [
        f"| {shape.name}, rows | {first}, GB/s | {' | '.join(f'{name}, GB/s | ratio' for name in others)} |",
        "|---" * (2 + 2 * len(others)) + "|",
    ]
    for count in ROWS:
        taken = quiet.take(f"{count} rows", partial(measure, count), ROUNDS)
        lines.append(f"| {count} | {' | '.join(cells(taken))} |")
    return [*lines, ""]


def cells(rates: Sequence[Sequence[float]]) -> list[str]:
    """Return the median rate of each format, and of all but the first the ratio to the first with its
    quartiles.
    """
    first, *others = zip(*rates, strict=True)
    found = [f"{statistics.median(first) / 1e9:.1f}"]
    for rate in others:
        ratios = [a / b for a, b in zip(rate, first, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        found += [f"{statistics.median(rate) / 1e9:.1f}", f"**{middle:.2f}** ({low:.2f}–{high:.2f})"]
    return found


def main() -> None:
    """Measure, print the page and write it to the results."""
    parser = argparse.ArgumentParser(prog="bench.expert_rates")
    parser.add_argument("--isa", help="an instruction set other than the best")
    isa = parser.parse_args().isa
    quiet = QuietRounds()
    lines = [line for shape in SHAPES for line in compare(shape, isa, quiet)]
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    about = f"{describe()}; {CpuDevice(isa, THREADS).info.description}; {date}"
    notes = f"Bytes of the experts that a step uses, over its seconds; medians of {ROUNDS} rounds, ratios with quartiles."
    text = "\n".join(["# Rates of experts by format", "", about, "", notes, "", *lines, str(quiet.tally), ""])
    print(text)
    suffix = "" if isa is None else f"-{isa}"
    (RESULTS / f"{date}-expert-rates{suffix}.md").write_text(text)


if __name__ == "__main__":
    main()
