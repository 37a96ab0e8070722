"""The paged KV cache: one pool per KV group, addressed through block tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KVDtype
from llmd.api.plan import KVGroup
from llmd.builtin.reference.kv_formats import KV_FORMATS


class KVPool:
    """Keys and values of one group: encoded arrays ``[2, layers, blocks, block_vectors, kv_heads, …]``.

    A ``latent`` group has keys only; its arrays begin with an axis of 1. Positions are those of vectors: if
    the group has a stride, of ``stride`` tokens each.
    """

    def __init__(self, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        self._format = KV_FORMATS[kv_dtype]
        self._head_dim, self._value_dim = group.head_dim, group.value_dim
        self._sides = 1 if group.kind == "latent" else 2
        self.stride, self._vectors = group.stride, group.block_vectors
        block = np.zeros((self._vectors, group.kv_heads, group.head_dim), np.float32)
        self._arrays = tuple(
            np.zeros((self._sides, len(group.layers), num_blocks, *array.shape), array.dtype)
            for array in self._format.encode(block, np.arange(self._vectors))
        )

    def copy(self, source: int, target: int) -> None:
        """Copy a block in all layers."""
        for array in self._arrays:
            array[:, :, target] = array[:, :, source]

    def read_blocks(self, blocks: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the contents of blocks in all layers, ``[len(blocks), bytes]``: one array after another.

        Raises:
            ValueError: there is no such block.
        """
        self._check(blocks)
        return np.concatenate([_bytes(array[:, :, blocks]) for array in self._arrays], axis=1)

    def write_blocks(self, blocks: NDArray[np.int32], contents: NDArray[np.uint8]) -> None:
        """Write contents that `read_blocks` returned."""
        self._check(blocks)
        sizes = [_bytes(array[:, :, :1]).shape[1] for array in self._arrays]
        if contents.shape != (len(blocks), sum(sizes)):
            raise ValueError(f"contents are {contents.shape}, expected {(len(blocks), sum(sizes))}")
        for array, part in zip(self._arrays, np.split(contents, np.cumsum(sizes)[:-1], axis=1), strict=True):
            shape = (len(blocks), *array.shape[:2], *array.shape[3:])
            array[:, :, blocks] = np.moveaxis(part.copy().view(array.dtype).reshape(shape), 0, 2)

    def _check(self, blocks: NDArray[np.int32]) -> None:
        count = self._arrays[0].shape[2]
        if np.any((blocks < 0) | (blocks >= count)):
            raise ValueError(f"blocks {blocks.tolist()} are outside 0..{count - 1}")

    def write(
        self,
        layer: int,
        table: NDArray[np.int32],
        positions: NDArray[np.int32],
        k: NDArray[np.float32],
        v: NDArray[np.float32],
    ) -> None:
        """Store ``k`` and ``v`` ``[rows, kv_heads, head_dim]`` at the positions, in the pool's dtype; of a
        ``latent`` group only ``k``.
        """
        block, slot = table[positions // self._vectors], positions % self._vectors
        for place, x in enumerate((k, v)[: self._sides]):
            for array, encoded in zip(self._arrays, self._format.encode(x, positions), strict=True):
                array[place, layer, block, slot] = encoded

    def read(
        self, layer: int, table: NDArray[np.int32], first: int, last: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return keys ``[last - first, kv_heads, head_dim]`` and values of positions ``[first, last)``."""
        positions = np.arange(first, last)
        block, slot = table[positions // self._vectors], positions % self._vectors
        decoded = [
            self._format.decode(
                tuple(array[place, layer, block, slot] for array in self._arrays), self._head_dim, positions
            )
            for place in range(self._sides)
        ]
        return decoded[0], decoded[-1][..., : self._value_dim]


class PagedKeys:
    """What one layer of a pool keeps of one sequence, of which a step has the rows at ``positions``."""

    def __init__(
        self, pool: KVPool, layer: int, table: NDArray[np.int32], positions: NDArray[np.int32]
    ) -> None:
        self._pool, self._layer, self._table, self._positions = pool, layer, table, positions

    def write(self, k: NDArray[np.float32], v: NDArray[np.float32]) -> None:
        """Store the keys and values of the step, as `KVPool.write` does: of each vector that stands for
        several tokens, what the row of the last one has.
        """
        last = (self._positions + 1) % self._pool.stride == 0
        numbers = self._positions[last] // self._pool.stride
        self._pool.write(self._layer, self._table, numbers, k[last], v[last])

    def seen(self, position: int) -> int:
        """Return the end of the vectors that a row at a position sees."""
        return (position + 1) // self._pool.stride

    def read(self, first: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return keys and values from vector ``first`` to what the last row sees, as `KVPool.read` does."""
        return self._pool.read(self._layer, self._table, first, self.seen(int(self._positions[-1])))


def _bytes(blocks: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Reshape ``[sides, layers, blocks, …]`` to ``[blocks, bytes]``."""
    first = np.ascontiguousarray(np.moveaxis(blocks, 2, 0))
    return first.reshape(len(first), -1).view(np.uint8)
