"""Pool the final hidden states of a text into one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llmd.api.embedding import Pooling

Rows = NDArray[np.float32]
Vector = NDArray[np.float32]


class Pool(Protocol):
    """Pools the rows of one text, which are added in order and in pieces of any size."""

    def add(self, rows: Rows) -> None:
        """Add the next rows, float32 ``[n, width]``; they are not referenced afterwards."""
        ...

    def vector(self) -> Vector:
        """Return the float32 vector of all rows."""
        ...


def open_pool(poolings: Sequence[Pooling]) -> Pool:
    """Return a pool for one text. Its vector does not depend on how the rows are split into chunks."""
    pools = [_open(pooling) for pooling in poolings]
    return pools[0] if len(pools) == 1 else _Joined(pools)


def _open(pooling: Pooling) -> Pool:
    match pooling:
        case "cls":
            return _First()
        case "last":
            return _Last()
        case "max":
            return _Largest()
        case _:
            return _Sum(pooling)


class _First:
    def __init__(self) -> None:
        self._row: Vector | None = None

    def add(self, rows: Rows) -> None:
        if self._row is None:
            self._row = rows[0].copy()

    def vector(self) -> Vector:
        assert self._row is not None, "a text has at least one token"
        return self._row


class _Last:
    def __init__(self) -> None:
        self._row: Vector | None = None

    def add(self, rows: Rows) -> None:
        self._row = rows[-1].copy()

    def vector(self) -> Vector:
        assert self._row is not None, "a text has at least one token"
        return self._row


class _Largest:
    def __init__(self) -> None:
        self._row: Vector | None = None

    def add(self, rows: Rows) -> None:
        largest = rows.max(axis=0)
        self._row = largest if self._row is None else np.maximum(self._row, largest)

    def vector(self) -> Vector:
        assert self._row is not None, "a text has at least one token"
        return self._row


class _Sum:
    """Sums in float64, row by row: with any other order the bits would depend on the chunks."""

    def __init__(self, pooling: Pooling) -> None:
        self._pooling = pooling
        self._total: NDArray[np.float64] | None = None
        self._count = 0
        self._weight = 0

    def add(self, rows: Rows) -> None:
        if self._total is None:
            self._total = np.zeros(rows.shape[1])
        first, self._count = self._count + 1, self._count + len(rows)
        weighted = rows.astype(np.float64)
        if self._pooling == "weighted_mean":
            weights = np.arange(first, self._count + 1)
            weighted *= weights[:, None]
            self._weight += int(weights.sum())
        else:
            self._weight = self._count
        for row in weighted:
            self._total += row

    def vector(self) -> Vector:
        assert self._total is not None, "a text has at least one token"
        divisor = np.sqrt(self._count) if self._pooling == "mean_sqrt_len" else self._weight
        return (self._total / divisor).astype(np.float32)


class _Joined:
    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools

    def add(self, rows: Rows) -> None:
        for pool in self._pools:
            pool.add(rows)

    def vector(self) -> Vector:
        return np.concatenate([pool.vector() for pool in self._pools])
