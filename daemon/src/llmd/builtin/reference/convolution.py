"""The short convolution of layers that keep a matrix for each head."""

from __future__ import annotations

import numpy as np

from llmd.api.step import Float32
from llmd.builtin.reference.numerics import silu
from llmd.builtin.reference.weights import Float64


def convolved(seen: Float32, filters: Float64, bias: Float64 | float = 0.0) -> Float64:
    """Return ``silu(sum of taps + bias)`` for each row of ``seen`` after the first ``taps - 1``.

    ``filters`` is ``[width, taps]``, or has other axes of size 1 between these.
    """
    taps = filters.shape[-1]
    weights, rows = filters.reshape(-1, taps), seen.astype(np.float64)
    count = len(rows) - taps + 1
    total: Float64 = np.zeros((count, rows.shape[1])) + bias
    for tap in range(taps):
        total += rows[tap : tap + count] * weights[:, tap]
    return silu(total)
