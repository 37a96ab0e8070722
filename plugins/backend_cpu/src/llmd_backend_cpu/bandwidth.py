"""Measures how fast weights are read from memory, without the help of caches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from llmd.api import Instruction, Linear, Program, SlottedOp, TensorRef, Weight, WeightData
from llmd.api.machine import available_bytes, cache_bytes
from llmd.api.step import Float32
from llmd_backend_cpu import _ext
from llmd_backend_cpu.weights import load_weights

_COLS = 2048
_PIECE_ROWS = 2048
_LEAST_BYTES = 64 << 20


def read_rate(device: _ext.Device, budget_s: float) -> float:
    """Return the bytes per second of reading memory twice as large as the caches.

    At most two thirds of the budget are spent on filling it: a busy or very large machine reads less.
    """
    start = time.perf_counter()
    weights = _filled(wanted_bytes(cache_bytes(), available_bytes()), start + budget_s * 2 / 3)
    loaded = load_weights(device, _program(len(weights)), _Source(weights), lambda _done, _total: None)
    rates: list[float] = []
    while not rates or time.perf_counter() - start < budget_s:
        before = time.perf_counter()
        rates.append(loaded.read_factors() / (time.perf_counter() - before))
    return statistics.median(rates)


def wanted_bytes(cache: int, available: int) -> int:
    """Return twice the cache size, so that each byte is evicted before it is read again.

    It is at most a quarter of the free memory.
    """
    return max(_LEAST_BYTES, min(2 * cache, available // 4))


class _Source:
    """A `TensorSource` of one weight."""

    packed = None

    def __init__(self, weights: Float32) -> None:
        self._weights = weights

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> None:
        """Return None: there is no file."""

    def read(self, weight: Weight) -> WeightData:
        return WeightData(weight.format, self._weights)


def _filled(num_bytes: int, deadline: float) -> Float32:
    """Return memory that was filled until the deadline; untouched pages would share one page of zeros."""
    weights = np.empty((num_bytes // (4 * _COLS), _COLS), np.float32)
    rows = 0
    while rows < len(weights) and (not rows or time.perf_counter() < deadline):
        weights[rows : rows + _PIECE_ROWS] = 0.5
        rows += _PIECE_ROWS
    return weights[:rows]


def _program(rows: int) -> Program:
    """Return a program of one linear op, whose weight has that many rows."""
    ref = TensorRef("weights", (rows, _COLS))
    op = SlottedOp(Linear("x", ("y",), (ref,), (None,)), inputs=(0,), outputs=(1,), weights=(0, None))
    return Program(
        first_part=1,
        last_part=2,
        hidden_size=_COLS,
        vocab_size=1,
        context_len=1,
        groups=(),
        instructions=(Instruction((op,), part=1, outputs=(1,)),),
        slot_widths=(_COLS, rows),
        weights=(Weight(ref, "f32"),),
        ropes=(),
        hidden_in=0,
        hidden_out=0,
    )
