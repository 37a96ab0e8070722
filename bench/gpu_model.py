"""A model with random weights on a device, and its streams: what a card is measured with."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from bench.shapes import Shape
from llmd.api import (
    BLOCK_LEN,
    INTEGER_FORMATS,
    Device,
    Format,
    GroupScales,
    LoadedWeights,
    ModelPlan,
    Program,
    Selection,
    Stage,
    StageLimits,
    Step,
    TensorRef,
    Ticket,
    Weight,
    WeightData,
)
from llmd.api.draws import GREEDY, NUM_COLUMNS, Draws
from llmd.api.step import Int32
from llmd.builtin.architectures.llama import plan
from llmd.models.arithmetic import chosen_arithmetic
from llmd.models.lowering import lower
from llmd.testing.selections import plain_selection

_WAIT_S = 60.0
_POOL_BYTES = 64 << 20


class RandomWeights:
    """A `TensorSource` whose weights repeat a pool of random bytes: made in seconds, large as real ones."""

    packed: Path | None = None

    def __init__(self) -> None:
        self._pool = np.random.default_rng(1).integers(0, 256, _POOL_BYTES, dtype=np.uint8)

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        return None

    def read(self, weight: Weight) -> WeightData:
        shape = weight.ref.view_shape
        if len(shape) == 1:
            return WeightData("f32", np.ones(shape, np.float32))
        if weight.format in INTEGER_FORMATS:
            return self._integers(weight.format, shape)
        values = np.resize(self._pool.view(np.uint16) & 0x80FF | 0x3C00, math.prod(shape))
        return WeightData("bf16", values.reshape(shape))

    def _integers(self, name: Format, shape: tuple[int, ...]) -> WeightData:
        form = INTEGER_FORMATS[name]
        group = form.row_group_size(shape[1])
        codes = np.resize(self._pool, math.prod(shape)).reshape(shape) & np.uint8((1 << form.bits) - 1)
        spread = 2.0 * shape[1] ** -0.5
        values = np.full((shape[0], -(-shape[1] // group)), spread / (1 << (form.bits - 1)), np.float16)
        minimums = GroupScales(np.full(values.shape, -spread, np.float16)) if form.has_minimum else None
        return WeightData(name, codes, GroupScales(values), minimums, group)


def plan_of(shape: Shape, context_len: int) -> ModelPlan:
    """Return the plan of a Llama shape."""
    return plan(shape.config(), context_len)


def lower_shape(device: Device, shape: Shape, name: Format, context_len: int) -> Program:
    """Lower a Llama shape for a device, with all matrices but the table in a format."""
    made = plan_of(shape, context_len)
    arithmetic = chosen_arithmetic(device.info, None)

    def format_of(kind: str, ref: TensorRef) -> Format:
        if len(ref.shape) == 1:
            return "f32"
        return name if kind in ("linear", "head") else "bf16"

    return lower(
        made,
        0,
        len(made.parts),
        format_of=format_of,
        patterns=device.info.patterns,
        activations=arithmetic.activations,
        precision=arithmetic.precision,
    )


class Streams:
    """Sequences of a stage, which draws their tokens itself; two steps are in flight."""

    def __init__(self, weights: LoadedWeights, count: int, context_len: int, max_rows: int) -> None:
        per_sequence = -(-context_len // BLOCK_LEN)
        limits = StageLimits(max_rows, count, count, "f16", tickets=3)
        self._stage: Stage = weights.stage({0: count * per_sequence}, limits)
        self._max_rows = max_rows
        self._table = np.arange(count * per_sequence, dtype=np.int32).reshape(count, per_sequence)
        self._lengths = np.zeros(count, np.int32)
        self.tokens: Int32 = np.zeros(count, np.int32)
        """The last token of each sequence that took part in the last `decode`."""

    def prefill(self, sequence: int, length: int) -> float:
        """Start a sequence again with a random prompt; return the seconds up to its first token."""
        prompt = np.random.default_rng(sequence).integers(0, 100, length).astype(np.int32)
        self._lengths[sequence] = 0
        start_s = time.perf_counter()
        for first in range(0, length, self._max_rows):
            ids = prompt[first : first + self._max_rows]
            outputs = [len(ids) - 1] if first + len(ids) == length else []
            ticket = self._submit(ids, np.array([sequence]), np.array([0, len(ids)]), outputs)
            self._stage.wait(ticket, _WAIT_S)
            self._stage.release(ticket)
        return time.perf_counter() - start_s

    def decode(self, sequences: int, steps: int) -> float:
        """Draw a token for each of the first sequences, some times; return the seconds of a step."""
        chosen, offsets = np.arange(sequences), np.arange(sequences + 1)
        flights: list[Ticket] = []
        start_s = time.perf_counter()
        for number in range(steps):
            feed = flights[-1] if number else None
            ids = -1 - chosen.astype(np.int32) if number else np.ones(sequences, np.int32)
            if len(flights) == 2:
                self._stage.wait(flights[0], _WAIT_S)
                self._stage.release(flights.pop(0))
            flights.append(self._submit(ids, chosen, offsets, chosen, feed))
        for ticket in flights:
            drawn = self._stage.wait(ticket, _WAIT_S).tokens
            assert drawn is not None, "the device draws"
            self.tokens = drawn.copy()
            self._stage.release(ticket)
        return (time.perf_counter() - start_s) / steps

    def close(self) -> None:
        """Free the stage."""
        self._stage.close()

    def _submit(
        self,
        ids: Int32,
        sequences: NDArray[np.intp],
        offsets: NDArray[np.intp],
        outputs: Sequence[int] | NDArray[np.intp],
        feed: Ticket | None = None,
    ) -> Ticket:
        counts = np.diff(offsets)
        within = np.arange(len(ids)) - np.repeat(offsets[:-1], counts)
        positions = (np.repeat(self._lengths[sequences], counts) + within).astype(np.int32)
        tables = (np.ascontiguousarray(self._table[sequences]),)
        copies = np.zeros((0, 3), np.int32)
        step = Step(ids, positions, offsets.astype(np.int32), tables, copies, feed=feed)
        rows = np.array(outputs, np.int32)
        ticket = self._stage.submit(step, None, _greedy(rows, positions[rows] + 1))
        self._lengths[sequences] += counts.astype(np.int32)
        return ticket


def _greedy(rows: Int32, positions: Int32) -> Selection:
    """Return a selection whose rows take their best token, and return nothing else."""
    count = len(rows)
    draws = Draws(
        kinds=np.full(count, GREEDY, np.int8),
        table=np.ones((count, NUM_COLUMNS)),
        seeds=np.zeros(count, np.uint64),
        positions=positions.astype(np.uint64),
        choices=np.zeros(count, np.uint64),
        token_only=np.ones(count, np.bool_),
    )
    return structs.replace(plain_selection(rows), draws=draws)
