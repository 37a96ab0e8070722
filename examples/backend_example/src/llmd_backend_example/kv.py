"""The paged KV cache: blocks of `BLOCK_LEN` tokens in a pool, addressed by block tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, KVDtype, KVGroup
from llmd.api.step import Float32, Int32

DTYPES: dict[KVDtype, type[np.floating]] = {"f32": np.float32, "f16": np.float16}


class KVPool:
    """The blocks of a KV group: ``[keys and values, layers, blocks, BLOCK_LEN, kv_heads, head_dim]``."""

    def __init__(self, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        shape = (2, len(group.layers), num_blocks, BLOCK_LEN, group.kv_heads, group.head_dim)
        self._kept: NDArray[np.floating] = np.zeros(shape, DTYPES[kv_dtype])

    def copy(self, source: int, target: int) -> None:
        """Copy a block in all layers, because sequences that shared it diverge."""
        self._kept[:, :, target] = self._kept[:, :, source]

    def write(self, layer: int, table: Int32, positions: Int32, k: Float32, v: Float32) -> None:
        """Write keys and values ``[rows, kv_heads, head_dim]`` at some positions, rounded to the pool's
        dtype.
        """
        blocks, places = table[positions // BLOCK_LEN], positions % BLOCK_LEN
        for kind, values in enumerate((k, v)):
            self._kept[kind, layer, blocks, places] = values

    def read(self, layer: int, table: Int32, first: int, last: int) -> tuple[Float32, Float32]:
        """Return the keys and values of positions ``[first, last)``, each ``[last - first, kv_heads,
        head_dim]``.
        """
        positions = np.arange(first, last)
        blocks, places = table[positions // BLOCK_LEN], positions % BLOCK_LEN
        keys, values = self._kept[:, layer, blocks, places].astype(np.float32)
        return keys, values
