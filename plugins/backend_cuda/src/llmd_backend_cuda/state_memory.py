"""The memory of a ``state`` group: for each slot, the states of all layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import KVGroup
from llmd.api.step import Int32
from llmd_backend_cuda.kv_memory import CopyArgs
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.runtime import KernelSpec, Launch, Runtime

_COPY_BYTES = 16
_THREADS = 256
_LAYERS = 4
"""Slots have memory for a multiple of so many layers, so that they are copied in pieces of 16 bytes."""


def slot_bytes(group: KVGroup) -> int:
    """Return the bytes of a slot."""
    return _layers(group) * group.state_bytes


def _layers(group: KVGroup) -> int:
    return -(-len(group.layers) // _LAYERS) * _LAYERS


class StateMemory:
    """Slots of one group, at first all 0.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(self, runtime: Runtime, group: KVGroup, num_slots: int) -> None:
        self.group = group
        self.num_blocks = num_slots
        self._runtime = runtime
        self._slot_bytes = slot_bytes(group)
        self._memory = runtime.allocate(max(num_slots * self._slot_bytes, _COPY_BYTES))
        runtime.fill_zero(self._memory)

    def states(self, table: int) -> States:
        """Return the states for kernels; ``table`` is the address of the group's block table."""
        return States(self._memory.pointer, table, _layers(self.group))

    def copy_launch(self, count: int, copies: int) -> Launch:
        """Return the launch that copies slots, as `KVMemory.copy_launch`."""
        kernel = self._runtime.kernel(
            KernelSpec.of("store_kv", "copy_blocks", {"HEAD_DIM": 32, "KV_DTYPE": 0})
        )
        args = CopyArgs(self._memory.pointer, self._slot_bytes, count, copies, self.group.id)
        return Launch(kernel, (-(-self._slot_bytes // (_COPY_BYTES * _THREADS)), 1, 1), _THREADS, args)

    def read_blocks(self, blocks: Int32) -> NDArray[np.uint8]:
        """Return the contents of slots, uint8 ``[len(blocks), slot bytes]``; wait for the device.

        Raises:
            ValueError: there is no such slot.
        """
        self._check(blocks)
        contents = np.empty((len(blocks), self._slot_bytes), np.uint8)
        for row, block in enumerate(blocks.tolist()):
            self._runtime.download(contents[row], self._memory, block * self._slot_bytes)
        return contents

    def write_blocks(self, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """Overwrite slots with contents that `read_blocks` returned.

        Raises:
            ValueError: there is no such slot, or the contents have another shape.
        """
        self._check(blocks)
        expected = (len(blocks), self._slot_bytes)
        if contents.shape != expected or contents.dtype != np.uint8:
            raise ValueError(f"contents are {contents.dtype} {contents.shape}, expected uint8 {expected}")
        rows = np.ascontiguousarray(contents)
        for row, block in enumerate(blocks.tolist()):
            self._runtime.upload(self._memory, block * self._slot_bytes, rows[row])

    def _check(self, blocks: Int32) -> None:
        if np.any((blocks < 0) | (blocks >= self.num_blocks)):
            raise ValueError(f"slots {blocks.tolist()} are outside 0..{self.num_blocks - 1}")
