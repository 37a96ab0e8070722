"""Hyper-connections: the weights of streams, and their mixtures."""

from __future__ import annotations

import numpy as np

from llmd.api.stream_ops import CollapseStreams, MixStreams, StreamWeights
from llmd.builtin.reference.numerics import Float64, sigmoid


def stream_weights(op: StreamWeights, x: Float64, weight: Float64, bias: Float64, scale: Float64) -> Float64:
    """Return the weights of each row: those that a layer reads and writes with, and a matrix row by row."""
    count = op.streams
    normed = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + op.eps)
    z = np.stack([weight @ row for row in normed])
    sizes = (count,) if op.rounds == 0 else (count, count, count * count)
    z = z * np.repeat(scale, sizes) + bias
    read = sigmoid(z[:, :count]) + op.floor
    if op.rounds == 0:
        return read
    written = 2 * sigmoid(z[:, count : 2 * count])
    mixed = _doubly_stochastic(op, z[:, 2 * count :].reshape(-1, count, count))
    return np.concatenate([read, written, mixed.reshape(len(x), -1)], axis=1)


def _doubly_stochastic(op: StreamWeights, z: Float64) -> Float64:
    """Divide rows and columns of matrices in turn until they add up to about 1."""
    powers = np.exp(z - z.max(axis=2, keepdims=True))
    matrix: Float64 = powers / powers.sum(axis=2, keepdims=True) + op.floor
    for number in range(op.rounds):
        if number > 0:
            matrix = matrix / (matrix.sum(axis=2, keepdims=True) + op.floor)
        matrix = matrix / (matrix.sum(axis=1, keepdims=True) + op.floor)
    return matrix


def collapse_streams(op: CollapseStreams, x: Float64, weights: Float64) -> Float64:
    """Return the mixture that a layer reads, ``[rows, width]``."""
    streams = x.reshape(len(x), op.streams, -1)
    out: Float64 = np.einsum("rnd,rn->rd", streams, weights[:, : op.streams])
    return out


def mix_streams(op: MixStreams, x: Float64, y: Float64, weights: Float64) -> Float64:
    """Return the streams after a layer, ``[rows, streams * width]``."""
    count = op.streams
    streams, matrix = x.reshape(len(x), count, -1), weights[:, 2 * count :].reshape(-1, count, count)
    mixed = np.einsum("rik,rid->rkd", matrix, streams)
    written = weights[:, count : 2 * count, None] * y[:, None]
    out: Float64 = (mixed + written).reshape(x.shape)
    return out
