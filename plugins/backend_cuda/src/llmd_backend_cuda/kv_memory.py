"""The memory of keys and values of one KV group; ``kernels/kv_layout.cuh`` has the layout of a block."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KVDtype
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN, Int32
from llmd_backend_cuda.runtime import KernelSpec, Launch, Runtime

MAX_HEAD_DIM = 256
"""Most elements of a head."""

KV_CODES: Mapping[KVDtype, int] = {"f16": 0, "bf16": 1, "int8": 2, "f32": 0}
"""Supported KV dtypes, with their numbers in ``kv_layout.cuh``. Attention rounds keys and values to float16
when it multiplies them. So f32 is rounded when it is stored, which gives the same results and takes half of
the memory; bf16 is rounded twice then."""

READ_CODES: Mapping[KVDtype, int] = {**KV_CODES, "bf16": KV_CODES["f16"]}
"""The numbers for kernels that only read."""

_SLAB = 32
_COPY_BYTES = 16
_COPY_THREADS = 256


class KVMemoryArgs(ctypes.Structure):
    """``struct KVMemory`` of ``kernels/kv_layout.cuh``."""

    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("block_table", ctypes.c_void_p),
        ("block_bytes", ctypes.c_int64),
        ("layer_at", ctypes.c_int64),
        ("table_width", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
    )


class CopyArgs(ctypes.Structure):
    """``struct CopyArgs`` of ``kernels/store_kv.cu``."""

    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("block_bytes", ctypes.c_int64),
        ("count", ctypes.c_void_p),
        ("copies", ctypes.c_void_p),
        ("group", ctypes.c_int32),
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
    if kv_dtype != "int8":
        return 2 * BLOCK_LEN * width * 2
    slabs = width // _SLAB
    key_scales = -(-slabs // 2) * 2
    return BLOCK_LEN * (2 * width + 2 * (key_scales + slabs))


def block_bytes(group: KVGroup, kv_dtype: KVDtype) -> int:
    """Return the bytes of a block of a group, for all its layers.

    Raises:
        ValueError: the group is not supported.
    """
    if group.kind != "paged" or group.value_dim != group.key_dim:
        raise ValueError(f"KV group {group.id} is {group.kind} with keys of {group.key_dim} elements")
    return len(group.layers) * group.kv_heads * head_bytes(group.head_dim, kv_dtype)


class KVMemory:
    """Blocks of one KV group: uint8 ``[blocks, block_bytes]``, at first all 0.

    Raises:
        ValueError: the group is not supported.
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(self, runtime: Runtime, group: KVGroup, num_blocks: int, kv_dtype: KVDtype) -> None:
        self.group = group
        self.kv_dtype: KVDtype = kv_dtype
        self.num_blocks = num_blocks
        self.block_bytes = block_bytes(group, kv_dtype)
        self._layer_bytes = group.kv_heads * head_bytes(group.head_dim, kv_dtype)
        self._runtime = runtime
        self._memory = runtime.allocate(max(num_blocks * self.block_bytes, _COPY_BYTES))
        runtime.fill_zero(self._memory)

    def args(self, kv_layer: int, block_table: int, table_width: int) -> KVMemoryArgs:
        """Return what kernels need of a layer.

        ``block_table`` is the address of int32 ``[sequences, table_width]``.
        """
        return KVMemoryArgs(
            self._memory.pointer,
            block_table,
            self.block_bytes,
            kv_layer * self._layer_bytes,
            table_width,
            self.group.kv_heads,
        )

    def copy_launch(self, count: int, copies: int) -> Launch:
        """Return the launch that copies blocks in order.

        ``copies`` is the address of int32 ``[count, 3]`` (group, source, target), ``count`` that of an int32.
        Copies of other groups are left out.
        """
        kernel = self._runtime.kernel(KernelSpec.of("store_kv", "copy_blocks", self.defines(KV_CODES)))
        args = CopyArgs(self._memory.pointer, self.block_bytes, count, copies, self.group.id)
        blocks = -(-self.block_bytes // (_COPY_BYTES * _COPY_THREADS))
        return Launch(kernel, (blocks, 1, 1), _COPY_THREADS, args)

    def defines(self, codes: Mapping[KVDtype, int]) -> dict[str, int | str]:
        """Return the macros of ``kv_layout.cuh``."""
        return {"HEAD_DIM": self.group.head_dim, "KV_DTYPE": codes[self.kv_dtype]}

    def read_blocks(self, blocks: Int32) -> NDArray[np.uint8]:
        """Return the contents of blocks, uint8 ``[len(blocks), block_bytes]``; wait for the device.

        Raises:
            ValueError: there is no such block.
        """
        self._check(blocks)
        contents = np.empty((len(blocks), self.block_bytes), np.uint8)
        for row, block in enumerate(blocks.tolist()):
            self._runtime.download(contents[row], self._memory, block * self.block_bytes)
        self._runtime.synchronize()
        return contents

    def write_blocks(self, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """Overwrite blocks with contents that `read_blocks` returned.

        Raises:
            ValueError: there is no such block, or the contents have another shape.
        """
        self._check(blocks)
        expected = (len(blocks), self.block_bytes)
        if contents.shape != expected or contents.dtype != np.uint8:
            raise ValueError(f"contents are {contents.dtype} {contents.shape}, expected uint8 {expected}")
        rows = np.ascontiguousarray(contents)
        for row, block in enumerate(blocks.tolist()):
            self._runtime.upload(self._memory, block * self.block_bytes, rows[row])

    def _check(self, blocks: Int32) -> None:
        if np.any((blocks < 0) | (blocks >= self.num_blocks)):
            raise ValueError(f"blocks {blocks.tolist()} are outside 0..{self.num_blocks - 1}")
