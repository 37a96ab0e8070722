"""Blocks of one KV group in the device's memory: how they are copied, read and overwritten."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from llmd.api import KVGroup
from llmd.api.step import Int32
from llmd_backend_cuda.runtime import KernelSpec, Launch, Runtime

COPY_BYTES = 16
"""Blocks are copied in pieces of this size."""

_THREADS = 256


class CopyArgs(ctypes.Structure):
    """``struct CopyArgs`` of ``kernels/store_kv.cu``."""

    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("block_bytes", ctypes.c_int64),
        ("count", ctypes.c_void_p),
        ("copies", ctypes.c_void_p),
        ("group", ctypes.c_int32),
    )


class BlockPool:
    """Blocks (or slots) of a group: uint8 ``[blocks, block_bytes]``, at first all 0.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self, runtime: Runtime, group: KVGroup, num_blocks: int, block_bytes: int, copying: KernelSpec
    ) -> None:
        """``copying`` is the kernel that copies blocks, of any variant of its source."""
        self.group = group
        self.num_blocks = num_blocks
        self.block_bytes = block_bytes
        self._runtime = runtime
        self._copying = copying
        self._memory = runtime.allocate(max(num_blocks * block_bytes, COPY_BYTES))
        runtime.fill_zero(self._memory)

    def copy_launch(self, count: int, copies: int) -> Launch:
        """Return the launch that copies blocks in order.

        ``copies`` is the address of int32 ``[count, 3]`` (group, source, target), ``count`` that of an int32.
        Copies of other groups are left out.
        """
        args = CopyArgs(self._memory.pointer, self.block_bytes, count, copies, self.group.id)
        blocks = -(-self.block_bytes // (COPY_BYTES * _THREADS))
        return Launch(self._runtime.kernel(self._copying), (blocks, 1, 1), _THREADS, args)

    def read_blocks(self, blocks: Int32) -> NDArray[np.uint8]:
        """Return the contents of blocks, uint8 ``[len(blocks), block_bytes]``; wait for the device.

        Raises:
            ValueError: there is no such block.
        """
        self._check(blocks)
        contents = np.empty((len(blocks), self.block_bytes), np.uint8)
        for row, block in enumerate(blocks.tolist()):
            self._runtime.download(contents[row], self._memory, block * self.block_bytes)
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
            what = "slots" if self.group.kind == "state" else "blocks"
            raise ValueError(f"{what} {blocks.tolist()} are outside 0..{self.num_blocks - 1}")
