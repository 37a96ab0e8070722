"""Paged keys and values: one pool per KV group, addressed through block tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.device import KVDtype
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN

_DTYPES: Mapping[KVDtype, type[np.floating]] = {"f32": np.float32, "f16": np.float16}


def block_bytes(group: KVGroup, kv_dtype: KVDtype) -> int:
    """Bytes of one block: keys and values of all layers of the group."""
    per_token = 2 * group.kv_heads * group.head_dim * np.dtype(_DTYPES[kv_dtype]).itemsize
    return len(group.layers) * BLOCK_LEN * per_token


class KVPool:
    """Keys and values ``[2, layers, blocks, BLOCK_LEN, kv_heads, head_dim]`` of one group."""

    def __init__(self, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        shape = (2, len(group.layers), num_blocks, BLOCK_LEN, group.kv_heads, group.head_dim)
        self._blocks = np.zeros(shape, _DTYPES[kv_dtype])

    def copy(self, source: int, target: int) -> None:
        """Copy a block, all layers."""
        self._blocks[:, :, target] = self._blocks[:, :, source]

    def write(
        self,
        layer: int,
        table: NDArray[np.int32],
        positions: NDArray[np.int32],
        k: NDArray[np.float32],
        v: NDArray[np.float32],
    ) -> None:
        """Store ``k`` and ``v`` ``[rows, kv_heads, head_dim]`` at the positions, rounded to the pool's dtype."""
        block, slot = table[positions // BLOCK_LEN], positions % BLOCK_LEN
        self._blocks[0, layer, block, slot] = k
        self._blocks[1, layer, block, slot] = v

    def read(
        self, layer: int, table: NDArray[np.int32], first: int, last: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return keys and values of positions ``[first, last)``, each ``[last - first, kv_heads, head_dim]``."""
        positions = np.arange(first, last)
        found = self._blocks[:, layer, table[positions // BLOCK_LEN], positions % BLOCK_LEN].astype(
            np.float64
        )
        return found[0], found[1]
