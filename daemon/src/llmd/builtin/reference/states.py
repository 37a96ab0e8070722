"""The states of a ``state`` group, in slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.plan import KVGroup


class StatePool:
    """States of all layers of one group: bytes ``[slots, layers, state_bytes]``."""

    def __init__(self, group: KVGroup, num_slots: int) -> None:
        self._bytes = np.zeros((num_slots, len(group.layers), group.state_bytes), np.uint8)

    def copy(self, source: int, target: int) -> None:
        """Copy a slot."""
        self._bytes[target] = self._bytes[source]

    def read(self, layer: int, slot: int) -> NDArray[np.float32]:
        """Return the state of a layer as float32; zeros if the slot is -1."""
        found = np.zeros_like(self._bytes[0, layer]) if slot < 0 else self._bytes[slot, layer]
        state: NDArray[np.float32] = found.view(np.float32).copy()
        return state

    def write(self, layer: int, slot: int, state: NDArray[np.float32], *, offset: int = 0) -> None:
        """Store the state of a layer, or a part of it from the element ``offset``."""
        begin = offset * state.itemsize
        self._bytes[slot, layer, begin : begin + state.nbytes] = state.view(np.uint8)

    def read_blocks(self, slots: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the contents of slots, ``[len(slots), bytes]``.

        Raises:
            ValueError: there is no such slot.
        """
        self._check(slots)
        return self._bytes[slots].reshape(len(slots), -1)

    def write_blocks(self, slots: NDArray[np.int32], contents: NDArray[np.uint8]) -> None:
        """Write contents that `read_blocks` returned."""
        self._check(slots)
        self._bytes[slots] = contents.reshape(len(slots), *self._bytes.shape[1:])

    def _check(self, slots: NDArray[np.int32]) -> None:
        if np.any((slots < 0) | (slots >= len(self._bytes))):
            raise ValueError(f"slots {slots.tolist()} are outside 0..{len(self._bytes) - 1}")
