"""The choice of the positions that sparse attention is limited to."""

from __future__ import annotations

import numpy as np

from llmd.api.latent_ops import Indexer
from llmd.builtin.reference.numerics import Float32, Float64


def choose_positions(op: Indexer, query: Float32, keys: Float64, head_weights: Float32) -> Float32:
    """Return the positions of one row, ascending, -1 behind them: ``[top_k]``.

    ``query`` is ``[heads * head_dim]``, ``keys`` are those of all positions that the row may see,
    ``[positions, head_dim]``, ``head_weights`` ``[heads]``.
    """
    products = query.reshape(op.heads, op.head_dim).astype(np.float64) @ keys.T
    scores = head_weights.astype(np.float64) @ np.maximum(products, 0.0)
    # A stable sort of the positions in reverse keeps the later ones of equal scores first.
    best = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")[: op.top_k]
    out = np.full(op.top_k, -1.0, np.float32)
    out[: len(best)] = np.sort(best)
    return out
