"""A small program whose results are known: a device on which they differ is not used.

It finds drivers that compute wrongly, a Kompute that returns zeros, and devices that drop subnormal float16
numbers, which scales and weights may be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    Activate,
    HostHidden,
    Instruction,
    Linear,
    Norm,
    Program,
    SlottedOp,
    StageLimits,
    Step,
    TensorRef,
    Weight,
    WeightData,
)
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.weights import load_weights

WIDTH = 96
ROWS = 5
TOLERANCE = 1e-5
"""Of a result, relative to the largest one. Float32 sums in another order differ by less than 1e-6."""

_PLAIN, _WIDE = (
    Weight(TensorRef("plain", (WIDTH, WIDTH)), "f16"),
    Weight(TensorRef("wide", (WIDTH, WIDTH)), "f32"),
)


class _Source:
    """See `llmd.api.TensorSource`: float16 numbers, most of them subnormal, and float32 numbers."""

    packed = None

    @contextlib.contextmanager
    def reading_ahead(self, weights: Sequence[Weight]) -> Iterator[Sequence[int]]:
        yield range(len(weights))

    def stored_blocks(self, weight: Weight) -> None:
        return None

    def read(self, weight: Weight) -> WeightData:
        return WeightData(weight.format, _values(weight))


def difference(arena: Arena) -> str:
    """Return how results differ from those of NumPy, in one sentence; empty: they do not.

    Raises:
        DeviceError: the device failed.
    """
    rows = np.sin(np.arange(ROWS * WIDTH, dtype=np.float32)).reshape(ROWS, WIDTH)
    mine, expected = _computed(arena, rows), _expected(rows.astype(np.float64))
    error = float(np.max(np.abs(mine - expected)) / np.max(np.abs(expected)))
    if np.isfinite(error) and error <= TOLERANCE:
        return ""
    return f"its results differ from the reference's by {error:.1e}, {TOLERANCE:.0e} is allowed: update its driver"


def _computed(arena: Arena, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    weights = load_weights(arena, _program(), _Source(), lambda _done, _total: None, ())
    stage = weights.stage({}, StageLimits(ROWS, 1, 1))
    step = Step(
        token_ids=np.zeros(ROWS, np.int32),
        positions=np.arange(ROWS, dtype=np.int32),
        row_offsets=np.array([0, ROWS], np.int32),
        block_tables=(),
        copies=np.zeros((0, 3), np.int32),
    )
    ticket = stage.submit(step, HostHidden(rows), None)
    found = stage.hidden(ticket).host()
    stage.release(ticket)
    stage.close()
    weights.close()
    return found


def _expected(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    normed = rows / np.sqrt(np.mean(rows**2, axis=1, keepdims=True) + 1e-6)
    plain = normed @ _values(_PLAIN).astype(np.float64).T
    z = plain @ _values(_WIDE).astype(np.float64).T
    result: NDArray[np.float64] = z / (1.0 + np.exp(-z))
    return result


def _values(weight: Weight) -> NDArray[np.generic]:
    numbers = np.cos(np.arange(WIDTH * WIDTH, dtype=np.float64)).reshape(WIDTH, WIDTH)
    return (
        (numbers * 2.0**-16).astype(np.float16)
        if weight is _PLAIN
        else (numbers * 2.0**14).astype(np.float32)
    )


def _program() -> Program:
    ops = (
        SlottedOp(Norm("hidden", "a", None, 1e-6), (0,), (1,), (None, None)),
        SlottedOp(Linear("a", ("b",), (_PLAIN.ref,), (None,)), (1,), (2,), (0, None)),
        SlottedOp(Linear("b", ("c",), (_WIDE.ref,), (None,)), (2,), (3,), (1, None)),
        SlottedOp(Activate("c", "hidden", "silu"), (3,), (4,), ()),
    )
    return Program(
        first_part=0,
        last_part=1,
        hidden_size=WIDTH,
        vocab_size=1,
        context_len=ROWS,
        groups=(),
        instructions=tuple(Instruction((op,), 0, op.outputs) for op in ops),
        slot_widths=(WIDTH,) * 5,
        weights=(_PLAIN, _WIDE),
        ropes=(),
        hidden_in=0,
        hidden_out=4,
        activations="f32",
    )
