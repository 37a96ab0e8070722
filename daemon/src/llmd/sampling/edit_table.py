"""Edits of logits, one entry for each token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Edits = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]
"""Ids, factors and biases of one row's edits."""

NO_EDITS: Edits = (np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32))


class EditTable:
    """Entries in growing arrays: a step reads them as they are, and a new token changes one or two."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._ids = np.zeros(16, np.int32)
        self._factors, self._biases = np.zeros(16, np.float32), np.zeros(16, np.float32)

    def set(self, token: int, factor: float, bias: float) -> None:
        """Set or replace the edit of a token."""
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            self._ids = np.resize(self._ids, 2 * place)
            self._factors = np.resize(self._factors, 2 * place)
            self._biases = np.resize(self._biases, 2 * place)
        self._ids[place], self._factors[place], self._biases[place] = token, factor, bias

    def fork(self) -> EditTable:
        """Return a copy of the table."""
        forked = EditTable()
        forked._places = self._places.copy()
        forked._ids, forked._factors = self._ids.copy(), self._factors.copy()
        forked._biases = self._biases.copy()
        return forked

    def row(self, passing: Mapping[int, float]) -> Edits:
        """Return all entries; ``passing`` has biases by token that are added for this row only."""
        count = len(self._places)
        ids, factors, biases = self._ids[:count], self._factors[:count], self._biases[:count]
        if not passing:
            return ids, factors, biases
        biases = biases.copy()
        for token in passing.keys() & self._places:
            biases[self._places[token]] += np.float32(passing[token])
        new = [token for token in passing if token not in self._places]
        return (
            np.concatenate((ids, np.array(new, np.int32))),
            np.concatenate((factors, np.ones(len(new), np.float32))),
            np.concatenate((biases, np.array([passing[token] for token in new], np.float32))),
        )
