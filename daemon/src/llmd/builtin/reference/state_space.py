"""Mamba-2's state space over the rows of one sequence, one row after the other."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.api.state_ops import StateSpace
from llmd.api.step import Float32
from llmd.builtin.reference.convolution import convolved
from llmd.builtin.reference.gated_delta import positive_rates
from llmd.builtin.reference.numerics import softplus
from llmd.builtin.reference.weights import Float64


class SpaceTensors(msgspec.Struct, frozen=True):
    """The tensors of an op."""

    c_taps: Float64
    b_taps: Float64
    x_taps: Float64
    rates: Float64
    bias: Float64
    skips: Float64
    filter_biases: tuple[Float64, ...]
    """Of c, b and x, or none."""

    @property
    def filters(self) -> Float64:
        return np.concatenate([self.c_taps, self.b_taps, self.x_taps])

    @property
    def filter_bias(self) -> Float64 | float:
        return np.concatenate(self.filter_biases) if self.filter_biases else 0.0


def run_space(
    op: StateSpace, tensors: SpaceTensors, values: tuple[Float32, ...], state: Float32
) -> tuple[Float32, Float32]:
    """Return the output of all rows, and the state after the last.

    ``values`` are c, b, x and time, each ``[rows, width]``. The state is float32, and rounded to that after
    each row: how rows are split over steps does not change a bit.
    """
    rows, stated = np.concatenate(values[:3], axis=1), values[3]
    kept = (op.taps - 1) * rows.shape[1]
    before, matrices = state[:kept].reshape(-1, rows.shape[1]), state[kept:]
    matrices = matrices.reshape(op.heads, op.state_size, op.head_dim)
    seen = np.concatenate([before, rows])
    mixed = convolved(seen, tensors.filters, tensors.filter_bias)
    times = np.maximum(softplus(stated + tensors.bias.reshape(-1)), op.least_time)
    if op.most_time is not None:
        times = np.minimum(times, op.most_time)
    decays = np.exp(-positive_rates(tensors.rates, op.rates_as).reshape(-1) * times)
    skips = tensors.skips.reshape(-1, 1)
    out = np.empty((len(rows), op.heads, op.head_dim), np.float32)
    for number in range(len(rows)):
        c, b, x = _heads(op, mixed[number])
        written = np.einsum("hs,hd->hsd", b, x * times[number][:, None])
        decayed = matrices.astype(np.float64) * decays[number][:, None, None]
        matrices = (decayed + written).astype(np.float32)
        out[number] = np.einsum("hs,hsd->hd", c, matrices.astype(np.float64)) + skips * x
    last = np.concatenate([seen[len(rows) :].reshape(-1), matrices.reshape(-1)])
    return out.reshape(len(rows), -1), last


def _heads(op: StateSpace, row: Float64) -> tuple[Float64, Float64, Float64]:
    """Return c, b and x of all heads."""
    width = op.groups * op.state_size
    c, b, x = np.split(row, [width, 2 * width])
    of = np.arange(op.heads) // (op.heads // op.groups)
    c, b = (part.reshape(op.groups, op.state_size)[of] for part in (c, b))
    return c, b, x.reshape(op.heads, op.head_dim)
