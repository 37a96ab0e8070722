"""The memory of a KV group: for each layer, blocks of keys and values (or slots with a state)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, KVDtype, KVGroup
from llmd.api.step import Int32
from llmd_backend_vulkan.commands import WORD, Buffer, Dispatch, Shader
from llmd_backend_vulkan.memory import Arena

MAX_HEAD_DIM = 576
"""Most elements of a head: what shaders have room for in shared memory."""

KV_CODES: Mapping[KVDtype, int] = {"f16": 1, "bf16": 2, "f32": 0, "int8": 3, "int4": 4}
"""KV dtypes, with their numbers in ``kv_layout.glsl``."""

_COPY = Shader("copy_blocks")
_GROUPS, _THREADS = 64, 64


def head_words(head_dim: int, kv_dtype: KVDtype) -> int:
    """Return the words of a key or a value."""
    if kv_dtype == "f32":
        return head_dim
    if kv_dtype == "int8":
        return -(-head_dim // 4) + -(-head_dim // 64)
    if kv_dtype == "int4":
        return -(-head_dim // 8) + -(-head_dim // 32)
    return -(-head_dim // 2)


def layer_words(group: KVGroup, kv_dtype: KVDtype) -> int:
    """Return the words of a block (or slot) of one layer.

    Raises:
        ValueError: the group is not supported.
    """
    if group.kind == "state":
        return -(-group.state_bytes // WORD)
    if group.kind == "latent":
        return group.kv_heads * group.block_vectors * head_words(group.key_dim, kv_dtype)
    if group.value_dim != group.key_dim:
        raise ValueError(
            f"KV group {group.id} is {group.kind} with keys of {group.key_dim} elements"
            f" and values of {group.value_dim}"
        )
    return 2 * group.kv_heads * BLOCK_LEN * head_words(group.head_dim, kv_dtype)


def block_bytes(group: KVGroup, kv_dtype: KVDtype) -> int:
    """Return the bytes of a block (or slot), for all layers of a group."""
    return WORD * len(group.layers) * layer_words(group, kv_dtype)


class KVPool:
    """Blocks (or slots) of one group, at first all 0.

    Each layer has a region of its own, so that a pool may be larger than a buffer.
    """

    def __init__(self, arena: Arena, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        """Take the memory.

        Raises:
            MemoryBudgetError: there is not enough, or the blocks of a layer do not fit in a buffer.
        """
        self.group = group
        self.num_blocks = num_blocks
        self.kv_dtype: KVDtype = kv_dtype
        self.block_words = layer_words(group, kv_dtype)
        """Words of a block in one layer."""
        self._arena = arena
        self.layers = [arena.take(max(1, num_blocks) * self.block_words) for _ in group.layers]
        for region in self.layers:
            arena.fill_zero(region)

    @property
    def vector_bits(self) -> int:
        """Bits of the number of a vector in a block: there are 2 to the power of this, at most 16."""
        return self.group.block_vectors.bit_length() - 1

    def copies(self, listed: Buffer, count: int) -> list[Dispatch]:
        """Return the dispatches that copy blocks in order; ``listed`` has int32 ``[count, 3]``."""
        groups = (min(_GROUPS, -(-self.block_words // _THREADS)), 1, 1)
        return [
            Dispatch(
                _COPY, (listed, region.buffer), (count, self.group.id, region.at, self.block_words), groups
            )
            for region in self.layers
        ]

    def read_blocks(self, blocks: Int32) -> NDArray[np.uint8]:
        """Return the contents of blocks, uint8 ``[len(blocks), bytes of a block]``; wait for the device.

        Raises:
            ValueError: there is no such block.
        """
        self._check(blocks)
        contents = np.empty((len(blocks), len(self.layers), self.block_words), np.uint32)
        for row, block in enumerate(blocks.tolist()):
            for layer, region in enumerate(self.layers):
                contents[row, layer] = self._arena.download(
                    region, block * self.block_words, self.block_words
                )
        return contents.reshape(len(blocks), -1).view(np.uint8)

    def write_blocks(self, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """Overwrite blocks with contents that `read_blocks` returned.

        Raises:
            ValueError: there is no such block, or the contents have another shape.
        """
        self._check(blocks)
        expected = (len(blocks), WORD * len(self.layers) * self.block_words)
        if contents.shape != expected or contents.dtype != np.uint8:
            raise ValueError(f"contents are {contents.dtype} {contents.shape}, expected uint8 {expected}")
        words = np.ascontiguousarray(contents).view(np.uint32).reshape(len(blocks), -1, self.block_words)
        for row, block in enumerate(blocks.tolist()):
            for layer, region in enumerate(self.layers):
                self._arena.upload(region, block * self.block_words, words[row, layer])

    def _check(self, blocks: Int32) -> None:
        if np.any((blocks < 0) | (blocks >= self.num_blocks)):
            what = "slots" if self.group.kind == "state" else "blocks"
            raise ValueError(f"{what} {blocks.tolist()} are outside 0..{self.num_blocks - 1}")
