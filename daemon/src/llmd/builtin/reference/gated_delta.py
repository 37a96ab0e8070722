"""The gated delta rule over the rows of one sequence, one row after the other."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.api.state_ops import DELTA_EPS, GatedDelta, Rates
from llmd.api.step import Float32
from llmd.builtin.reference.convolution import convolved
from llmd.builtin.reference.numerics import sigmoid, softplus
from llmd.builtin.reference.weights import Float64


class DeltaTensors(msgspec.Struct, frozen=True):
    """The tensors of an op."""

    q_taps: Float64
    k_taps: Float64
    v_taps: Float64
    rates: Float64
    bias: Float64


def run_delta(
    op: GatedDelta, tensors: DeltaTensors, values: tuple[Float32, ...], state: Float32
) -> tuple[Float32, Float32]:
    """Return the output of all rows, and the state after the last.

    ``values`` are q, k, v, decay and beta, each ``[rows, width]``. The state is float32, and rounded to that
    after each row: how rows are split over steps does not change a bit.
    """
    rows, decay, beta = np.concatenate(values[:3], axis=1), *values[3:]
    kept = (op.taps - 1) * rows.shape[1]
    before, matrices = state[:kept].reshape(-1, rows.shape[1]), state[kept:]
    matrices = matrices.reshape(op.heads, op.key_dim, op.value_dim)
    seen = np.concatenate([before, rows])
    mixed = convolved(seen, np.concatenate([tensors.q_taps, tensors.k_taps, tensors.v_taps]))
    shares = sigmoid(beta.astype(np.float64))
    decays = _decays(op, tensors, decay)
    out = np.empty((len(rows), op.heads, op.value_dim), np.float32)
    for number in range(len(rows)):
        q, k, v = _heads(op, mixed[number])
        decayed = matrices.astype(np.float64) * decays[number][:, :, None]
        missing = v - np.einsum("hk,hkv->hv", k, decayed)
        update = np.einsum("hk,hv->hkv", k, missing * shares[number][:, None])
        matrices = (decayed + update).astype(np.float32)
        out[number] = np.einsum("hk,hkv->hv", q, matrices.astype(np.float64))
    last = np.concatenate([seen[len(rows) :].reshape(-1), matrices.reshape(-1)])
    return out.reshape(len(rows), -1), last


def _decays(op: GatedDelta, tensors: DeltaTensors, decay: Float32) -> Float64:
    """Return the factors of the state, ``[rows, heads, 1 or key_dim]``."""
    times = softplus(decay + tensors.bias.reshape(-1)).reshape(len(decay), op.heads, -1)
    factors: Float64 = np.exp(-positive_rates(tensors.rates, op.rates_as).reshape(-1, 1) * times)
    return factors


def positive_rates(stored: Float64, stored_as: Rates) -> Float64:
    """Return the rates of decays."""
    return np.exp(stored) if stored_as == "log" else -stored


def _heads(op: GatedDelta, row: Float64) -> tuple[Float64, Float64, Float64]:
    """Return normalised queries and keys, and the values, of all heads."""
    width = op.key_heads * op.key_dim
    q, k, v = np.split(row, [width, 2 * width])
    heads = np.arange(op.heads)
    of = heads % op.key_heads if op.tiled else heads // (op.heads // op.key_heads)
    q, k = (_normalized(x.reshape(op.key_heads, op.key_dim))[of] for x in (q, k))
    return q * op.key_dim**-0.5, k, v.reshape(op.heads, op.value_dim)


def _normalized(x: Float64) -> Float64:
    normalized: Float64 = x / np.sqrt((x * x).sum(axis=1, keepdims=True) + DELTA_EPS)
    return normalized
