"""The memory of keys and values of one KV group; ``kernels/kv_layout.cuh`` has the layout of a block."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from llmd.api.kv import LATENT_KV_DTYPES, KVDtype
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd_backend_cuda.block_pool import BlockPool
from llmd_backend_cuda.runtime import KernelSpec, Runtime

MAX_HEAD_DIM = 576
"""Most elements of a head."""

KV_CODES: Mapping[KVDtype, int] = {"f16": 0, "bf16": 1, "int8": 2, "int4": 3, "f32": 0}
"""Supported KV dtypes, with their numbers in ``kv_layout.cuh``. Attention rounds keys and values to float16
when it multiplies them. So f32 is rounded when it is stored, which gives the same results and takes half of
the memory; bf16 is rounded twice then."""

READ_CODES: Mapping[KVDtype, int] = {**KV_CODES, "bf16": KV_CODES["f16"]}
"""The numbers for kernels that only read."""

INDEX_CODES: Mapping[KVDtype, int] = {"f16": 0, "bf16": 1, "f32": 4}
"""The same for index keys. Those in f32 are not rounded, since a small difference could choose another
position."""

INDEX_READ_CODES: Mapping[KVDtype, int] = {**INDEX_CODES, "bf16": INDEX_CODES["f16"]}

_SLAB = 32


class KVMemoryArgs(ctypes.Structure):
    """``struct KVMemory`` of ``kernels/kv_layout.cuh``."""

    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("block_table", ctypes.c_void_p),
        ("block_bytes", ctypes.c_int64),
        ("layer_at", ctypes.c_int64),
        ("kv_heads", ctypes.c_int32),
    )


def padded_dim(head_dim: int) -> int:
    """Return the elements of a head with padding."""
    return -(-head_dim // _SLAB) * _SLAB


def head_bytes(head_dim: int, kv_dtype: KVDtype) -> int:
    """Return the bytes of the keys and values of a block and head.

    Raises:
        ValueError: the KV dtype is not supported, or the head is too large.
    """
    if kv_dtype not in KV_CODES or head_dim > MAX_HEAD_DIM:
        raise ValueError(f"heads of {head_dim} elements in {kv_dtype} are not supported")
    width = padded_dim(head_dim)
    slabs = width // _SLAB
    if kv_dtype == "int4":
        return 2 * BLOCK_LEN * (width // 2 + 4 * slabs)
    if kv_dtype != "int8":
        return 2 * BLOCK_LEN * width * 2
    key_scales = -(-slabs // 2) * 2
    return BLOCK_LEN * (2 * width + 2 * (key_scales + slabs))


def block_bytes(group: KVGroup, kv_dtype: KVDtype, *, is_index: bool = False) -> int:
    """Return the bytes of a block of a group, for all its layers; ``is_index``: it keeps index keys.

    Raises:
        ValueError: the group or the KV dtype is not supported.
    """
    return len(group.layers) * _layer_bytes(group, kv_dtype, is_index=is_index)


def _layer_bytes(group: KVGroup, kv_dtype: KVDtype, *, is_index: bool) -> int:
    if group.kind == "latent" and kv_dtype in LATENT_KV_DTYPES:
        is_split = is_index and kv_dtype == "f32"
        # Keys only, or what is left of each in the place of values.
        of_block = group.kv_heads * head_bytes(group.head_dim, kv_dtype) // (1 if is_split else 2)
        return of_block * group.block_vectors // BLOCK_LEN
    if group.kind != "paged" or group.value_dim != group.key_dim:
        raise ValueError(
            f"KV group {group.id} is {group.kind} with keys of {group.key_dim} elements in {kv_dtype}"
        )
    return group.kv_heads * head_bytes(group.head_dim, kv_dtype)


class KVMemory(BlockPool):
    """Blocks of keys and values of one KV group.

    Raises:
        ValueError: the group is not supported.
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self,
        runtime: Runtime,
        group: KVGroup,
        num_blocks: int,
        kv_dtype: KVDtype,
        *,
        is_index: bool = False,
    ) -> None:
        """``is_index``: the group keeps index keys."""
        self.kv_dtype: KVDtype = kv_dtype
        self.store_codes = INDEX_CODES if is_index else KV_CODES
        """The numbers for the kernel that stores."""
        self._layer_bytes = _layer_bytes(group, kv_dtype, is_index=is_index)
        copying = KernelSpec.of("store_kv", "copy_blocks", _macros(group, self.store_codes[kv_dtype]))
        size = block_bytes(group, kv_dtype, is_index=is_index)
        super().__init__(runtime, group, num_blocks, size, copying)

    def args(self, kv_layer: int, block_table: int) -> KVMemoryArgs:
        """Return what kernels need of a layer; ``block_table`` is `StepMemory.table` of the group."""
        return KVMemoryArgs(
            self._memory.pointer,
            block_table,
            self.block_bytes,
            kv_layer * self._layer_bytes,
            self.group.kv_heads,
        )

    @property
    def rotates_heads(self) -> bool:
        """Whether attention reads queries that the launch that stores keys has rotated."""
        return self.kv_dtype == "int4"

    def defines(self, codes: Mapping[KVDtype, int]) -> dict[str, int | str]:
        """Return the macros of ``kv_layout.cuh``."""
        return _macros(self.group, codes[self.kv_dtype])


def _macros(group: KVGroup, code: int) -> dict[str, int | str]:
    latent = {"LATENT": 1, "VALUE_DIM": group.value_dim} if group.kind == "latent" else {}
    stride = {"STRIDE": group.stride} if group.stride > 1 else {}
    return {"HEAD_DIM": group.head_dim, "KV_DTYPE": code, **latent, **stride}
