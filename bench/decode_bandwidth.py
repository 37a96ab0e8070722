"""Compares single-stream decoding with reading the same weights: ``python -m bench.decode_bandwidth
[SHAPE]``.

Steps of one row alternate with a plain read of the packed weights on the same threads. The ratio of their
rates is the share of the memory bandwidth that decoding reaches.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.machine import describe
from bench.shapes import SHAPES, Shape
from llmd.api import Format, GroupScales, Program, Stage, StageLimits, Step, TensorRef, Weight, WeightData
from llmd.builtin.architectures.llama import plan
from llmd.engine.steps.batch import select_rows
from llmd.models.lowering import lower
from llmd_backend_cpu.device import CpuDevice

RESULTS = Path(__file__).parent / "results"
CONTEXT_LEN = 1024
POSITION = 512


class RandomSource:
    """Random weights from one draw: int8 matrices, bf16 tables, norms of ones."""

    packed = None

    def __init__(self, largest: int) -> None:
        self._values = np.random.default_rng(0).integers(-127, 128, largest, dtype=np.int8)

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> None:
        """Return None: there is no file."""

    def read(self, weight: Weight) -> WeightData:
        shape = weight.ref.view_shape
        if len(shape) == 1:
            return WeightData("f32", np.ones(shape, np.float32))
        values = self._values[: math.prod(shape)].reshape(shape)
        if weight.format == "q8":
            scales = np.full((shape[0], shape[1] // 64), 0.02 / 73, np.float16)
            return WeightData("q8", values.view(np.uint8) ^ np.uint8(128), GroupScales(scales), group_size=64)
        return WeightData(
            "bf16", (values * np.float32(0.02 / 73)).view(np.uint32).__rshift__(16).astype(np.uint16)
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.decode_bandwidth")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=51)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    text = report(shape, arguments.rounds)
    print(text)
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-decode-bandwidth-{shape.name}.md").write_text(text)


def report(shape: Shape, rounds: int) -> str:
    device = CpuDevice()
    program = lower_int8(shape)
    largest = max(math.prod(weight.ref.view_shape) for weight in program.weights)
    parts = device.load(program, RandomSource(largest), lambda _done, _total: None)
    blocks = CONTEXT_LEN // 16
    stage = parts.stage({group.id: blocks for group in program.groups}, StageLimits(1, 1, 1))
    step = one_row(program, blocks)
    measured = [(seconds(parts.read_factors), seconds(lambda: run(stage, step))) for _ in range(rounds + 1)][
        1:
    ]
    return describe_rounds(shape, device, parts.read_factors(), measured)


def lower_int8(shape: Shape) -> Program:
    model = plan(shape.config(), CONTEXT_LEN)

    def format_of(kind: str, ref: TensorRef) -> Format:
        matrix: Format = "q8" if kind in {"linear", "head"} else "bf16"
        return matrix if len(ref.shape) == 2 else "f32"

    return lower(model, 0, len(model.parts), format_of=format_of)


def one_row(program: Program, blocks: int) -> Step:
    return Step(
        token_ids=np.array([1], np.int32),
        positions=np.array([POSITION], np.int32),
        row_offsets=np.array([0, 1], np.int32),
        block_tables=tuple(np.arange(blocks, dtype=np.int32)[None] for _ in program.groups),
        copies=np.zeros((0, 3), np.int32),
    )


def run(stage: Stage, step: Step) -> None:
    ticket = stage.submit(step, None, select_rows(np.array([0], np.int32)))
    stage.wait(ticket, 60.0)
    stage.release(ticket)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def describe_rounds(
    shape: Shape, device: CpuDevice, num_bytes: int, measured: list[tuple[float, float]]
) -> str:
    reads, steps = zip(*measured, strict=True)
    ratios = sorted(read / step for read, step in measured)
    rates = [f"{num_bytes / statistics.median(times) / 1e9:.1f}" for times in (reads, steps)]
    share = f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f}-{ratios[-1]:.2f})"
    return "\n".join(
        (
            f"# Decode against read bandwidth, {shape.name}, int8 in groups of 64",
            "",
            f"{describe()}; {device.info.description}; {datetime.now(UTC):%Y-%m-%d}",
            "",
            f"{num_bytes / 1e6:.0f} MB of weights, f16 KV, position {POSITION}; medians of {len(measured)} rounds:",
            "",
            "| read GB/s | decode GB/s | tokens/s | share (range) |",
            "|---|---|---|---|",
            f"| {rates[0]} | {rates[1]} | {1 / statistics.median(steps):.1f} | {share} |",
            "",
        )
    )


if __name__ == "__main__":
    main()
