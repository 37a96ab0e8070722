"""The ops of RWKV-7 over the rows of one sequence."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from llmd.api.step import Float32
from llmd.api.time_mix_ops import WKV_DECAY, WKV_EPS, GeneralizedDelta
from llmd.builtin.reference.numerics import sigmoid
from llmd.builtin.reference.weights import Float64


class WkvTensors(msgspec.Struct, frozen=True):
    """The tensors of an op."""

    removal: Float64
    mixing: Float64
    bonuses: Float64


def shift_tokens(
    shares: Sequence[Float64], values: tuple[Float32, ...], state: Float32
) -> tuple[Float32, Float32]:
    """Return the outputs side by side, and the last row. ``state`` begins with the row before."""
    (rows,) = values
    width = rows.shape[1]
    seen = np.concatenate([state[np.newaxis, :width], rows]).astype(np.float64)
    here, change = seen[1:], seen[:-1] - seen[1:]
    outs = [here + change * share.reshape(-1) for share in shares]
    return np.concatenate(outs, axis=1).astype(np.float32), rows[-1].copy()


def run_generalized_delta(
    op: GeneralizedDelta, tensors: WkvTensors, values: tuple[Float32, ...], state: Float32
) -> tuple[Float32, Float32]:
    """Return ``out`` and ``bonus`` of all rows side by side, and the state after the last row.

    ``values`` are r, k, v, decay and a, each ``[rows, width]``; ``state`` begins with the matrices. They are
    float32, and rounded to that after each row: how rows are split over steps does not change a bit.
    """
    shape = (-1, op.heads, op.head_dim)
    r, k, v, decay, a = (value.astype(np.float64).reshape(shape) for value in values)
    removal, mixing, bonuses = (
        tensor.reshape(shape[1:]) for tensor in (tensors.removal, tensors.mixing, tensors.bonuses)
    )
    rates, decays = sigmoid(a), np.exp(WKV_DECAY * sigmoid(decay))
    removed = _unit(k * removal)
    keys = k * (1 + (rates - 1) * mixing)
    matrices = state[: op.state_elements].reshape(op.heads, op.head_dim, op.head_dim)
    out = np.empty(r.shape, np.float32)
    for row in range(len(r)):
        before = matrices.astype(np.float64)
        found = np.einsum("hk,hkv->hv", removed[row], before)
        taken = np.einsum("hk,hv->hkv", rates[row] * removed[row], found)
        put = np.einsum("hk,hv->hkv", keys[row], v[row])
        matrices = (before * decays[row][:, :, None] - taken + put).astype(np.float32)
        out[row] = np.einsum("hk,hkv->hv", r[row], matrices.astype(np.float64))
    bonus = (r * keys * bonuses).sum(axis=2, keepdims=True) * v
    both = np.concatenate([out, bonus.astype(np.float32)], axis=1)
    return both.reshape(len(r), -1), matrices.reshape(-1)


def _unit(x: Float64) -> Float64:
    """Give each head the length 1."""
    lengths = np.sqrt((x * x).sum(axis=2, keepdims=True))
    unit: Float64 = x / np.maximum(lengths, WKV_EPS)
    return unit
