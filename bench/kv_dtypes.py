"""Measures the attention of one decoded token for each KV dtype: ``python -m bench.kv_dtypes``.

The dtypes take turns, step by step, over the same positions in scattered blocks. A step projects its row to
keys and values, then attends in one layer; its time at position 0 is subtracted.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.machine import describe
from llmd.api import (
    BLOCK_LEN,
    HIDDEN,
    KV_DTYPES,
    Attention,
    HostHidden,
    KVDtype,
    KVGroup,
    Linear,
    ModelPlan,
    Part,
    Program,
    StageLimits,
    Step,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.models.lowering import lower
from llmd_backend_cpu.device import CpuDevice

RESULTS = Path(__file__).parent / "results"
SHAPES = {
    "32 queries, 8 kv, of 64": (32, 8, 64),
    "32 queries, 8 kv, of 128": (32, 8, 128),
    "24 queries, 8 kv, of 128": (24, 8, 128),
    "16 queries, 16 kv, of 64": (16, 16, 64),
}
LENGTHS = (512, 4096, 16384)


class RandomSource:
    """Small normal weights."""

    packed = None

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> None:
        """Return None: there is no file."""

    def read(self, weight: Weight) -> WeightData:
        draw = np.random.default_rng(0).standard_normal(weight.ref.view_shape, np.float32)
        return WeightData("f32", draw * np.float32(0.02))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.kv_dtypes")
    parser.add_argument("--rounds", type=int, default=51)
    rounds = parser.parse_args().rounds
    device = CpuDevice(threads=1)
    text = "\n".join(
        (
            "# Attention of one token, by KV dtype",
            "",
            f"{describe()}; {device.info.description}; {datetime.now(UTC):%Y-%m-%d}",
            "",
            f"Microseconds of processor time for one layer on one thread, and as a share of those with f16; medians of {rounds} rounds:",
            "",
            f"| heads | positions | {' | '.join(KV_DTYPES)} |",
            f"|---|---{'|---' * len(KV_DTYPES)}|",
            *rows(device, rounds),
            "",
        )
    )
    print(text)
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-kv-dtypes.md").write_text(text)


def rows(device: CpuDevice, rounds: int) -> Iterator[str]:
    """Yield a line of the table for each shape and length."""
    for name, shape in SHAPES.items():
        program = attention_program(*shape)
        for length in LENGTHS:
            stages = {dtype: FilledStage(device, program, length, dtype) for dtype in KV_DTYPES}
            times: dict[KVDtype, list[float]] = {dtype: [] for dtype in KV_DTYPES}
            for _ in range(rounds + 1):
                for dtype, stage in stages.items():
                    times[dtype].append(stage.seconds(length - 1) - stage.seconds(0))
            medians = {dtype: statistics.median(measured[1:]) for dtype, measured in times.items()}
            cells = (f"{1e6 * t:.0f} ({t / medians['f16']:.2f})" for t in medians.values())
            yield f"| {name} | {length} | {' | '.join(cells)} |"
            for stage in stages.values():
                stage.close()


def attention_program(heads: int, kv_heads: int, head_dim: int) -> Program:
    """Return a program of one layer whose queries are the hidden states."""
    width = heads * head_dim
    refs = tuple(TensorRef(name, (kv_heads * head_dim, width)) for name in ("k", "v"))
    ops = (
        Linear(HIDDEN, ("k", "v"), refs, (None, None)),
        Attention(HIDDEN, "k", "v", HIDDEN, 0, 0, heads, kv_heads, head_dim, head_dim**-0.5, None),
    )
    parts = (Part("before", "ffn", 0, ()), Part("attention", "mixer", 0, ops), Part("after", "ffn", 0, ()))
    plan = ModelPlan(
        "bench", width, 1, max(LENGTHS), max(LENGTHS), (KVGroup(0, None, kv_heads, head_dim, (0,)),), parts
    )
    return lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")


class FilledStage:
    """A stage with one sequence, in blocks scattered over the pool."""

    def __init__(self, device: CpuDevice, program: Program, length: int, dtype: KVDtype) -> None:
        blocks = length // BLOCK_LEN
        parts = device.load(program, RandomSource(), lambda _done, _total: None)
        self._stage = parts.stage({0: blocks}, StageLimits(BLOCK_LEN, 1, 1, dtype))
        self._table = np.random.default_rng(0).permutation(blocks).astype(np.int32)[None]
        self._hidden = np.random.default_rng(1).standard_normal((BLOCK_LEN, program.hidden_size), np.float32)
        self._run(range(BLOCK_LEN), [])
        # Untouched memory is a single shared page of zeros, so copy the first block to every block.
        self._run(range(1), [(0, int(self._table[0, 0]), block) for block in range(blocks)])

    def seconds(self, position: int) -> float:
        """Return the CPU time of one row at a position."""
        start = time.process_time()
        self._run(range(position, position + 1), [])
        return time.process_time() - start

    def close(self) -> None:
        self._stage.close()

    def _run(self, positions: range, copies: list[tuple[int, int, int]]) -> None:
        step = Step(
            token_ids=np.zeros(len(positions), np.int32),
            positions=np.array(positions, np.int32),
            row_offsets=np.array([0, len(positions)], np.int32),
            block_tables=(self._table,),
            copies=np.array(copies, np.int32).reshape(-1, 3),
        )
        hidden = HostHidden(self._hidden[: len(positions)])
        self._stage.release(self._stage.submit(step, hidden, None))


if __name__ == "__main__":
    main()
