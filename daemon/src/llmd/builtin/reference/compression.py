"""Vectors that stand for several tokens, and attention to two sets of positions."""

from __future__ import annotations

import numpy as np

from llmd.api.compressed_ops import Compress, MergeAttention
from llmd.builtin.reference.kv import PagedKeys
from llmd.builtin.reference.numerics import Float32, Float64


def compress_rows(op: Compress, bias: Float64, kept: PagedKeys, positions: list[int]) -> Float32:
    """Return the vectors of the rows at ``positions``, one after the other; 0 for rows that complete none.

    ``kept`` has the rows' ``x`` and ``gate`` already.
    """
    out = np.zeros((len(positions), op.dim), np.float32)
    begin = max(0, positions[0] + 1 - op.span)
    vectors = kept.read(begin)[0][:, 0]
    for row, position in enumerate(positions):
        if (position + 1) % op.stride == 0:
            first, end = max(0, position + 1 - op.span), position + 1
            out[row] = _compressed(op, bias, vectors[first - begin : end - begin])
    return out


def _compressed(op: Compress, bias: Float64, vectors: Float64) -> Float64:
    """Return what stands for the last ``stride`` tokens of ``vectors``, ``[tokens, x and gate]``."""
    x, gate = np.split(vectors, 2, axis=1)
    gate = gate + np.tile(bias.reshape(op.stride, -1), (len(gate) // op.stride, 1))
    if op.overlap:
        before, last = slice(0, -op.stride), slice(-op.stride, None)
        x, gate = (np.concatenate([of[before, : op.dim], of[last, op.dim :]]) for of in (x, gate))
    weights = np.exp(gate - gate.max(axis=0))
    merged: Float64 = (weights * x).sum(axis=0) / weights.sum(axis=0)
    return merged


def merge_attention(op: MergeAttention, a: Float64, a_sums: Float64, b: Float64, b_sums: Float64) -> Float64:
    """Return attention over both sets of positions, ``[rows, heads * value_dim]``."""
    whole = np.logaddexp(a_sums, b_sums)
    parts = ((a, a_sums), (b, b_sums))
    return sum(
        (
            (values.reshape(len(a), op.heads, -1) * np.exp(sums - whole)[..., None]).reshape(a.shape)
            for values, sums in parts
        ),
        start=np.zeros_like(a),
    )
