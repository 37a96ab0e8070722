"""The memory of what vectors for several tokens are made of; ``kernels/compress.cu`` has its layout."""

from __future__ import annotations

from typing import cast

from llmd.api import BLOCK_LEN, KVGroup
from llmd.api.kv import LATENT_KV_DTYPES, KVDtype
from llmd_backend_cuda.block_pool import BlockPool
from llmd_backend_cuda.kv_memory import KVMemoryArgs
from llmd_backend_cuda.ops.embed import ITEM_BYTES, TableFormat
from llmd_backend_cuda.runtime import KernelSpec, Runtime

_COPYING = KernelSpec.of("store_kv", "copy_blocks", {"HEAD_DIM": 32, "KV_DTYPE": 0})


def parts_bytes(group: KVGroup, kv_dtype: KVDtype) -> int:
    """Return the bytes of a block of a group, for all its layers.

    Raises:
        ValueError: the KV dtype is not supported.
    """
    return len(group.layers) * _layer_bytes(group, kv_dtype)


def _format_of(kv_dtype: KVDtype) -> TableFormat:
    if kv_dtype not in LATENT_KV_DTYPES:
        raise ValueError(f"parts of vectors in {kv_dtype} are not supported")
    return cast("TableFormat", kv_dtype)


def _layer_bytes(group: KVGroup, kv_dtype: KVDtype) -> int:
    return BLOCK_LEN * group.head_dim * ITEM_BYTES[_format_of(kv_dtype)]


class PartsMemory(BlockPool):
    """Blocks of one group: ``[layers, 16, head_dim]`` in the KV dtype, which are x and gate of each token.

    Raises:
        ValueError: the KV dtype is not supported.
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(self, runtime: Runtime, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        self.format: TableFormat = _format_of(kv_dtype)
        """How an element is stored."""
        self._layer_bytes = _layer_bytes(group, kv_dtype)
        super().__init__(runtime, group, num_blocks, parts_bytes(group, kv_dtype), _COPYING)

    def args(self, kv_layer: int, block_table: int) -> KVMemoryArgs:
        """Return what kernels need of a layer; ``block_table`` is `StepMemory.table` of the group."""
        layer_at = kv_layer * self._layer_bytes
        return KVMemoryArgs(self._memory.pointer, block_table, self.block_bytes, layer_at, 1)
