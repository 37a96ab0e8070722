"""The memory of a ``state`` group: for each slot, the states of all layers."""

from __future__ import annotations

from llmd.api import KVGroup
from llmd_backend_cuda.block_pool import BlockPool
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.runtime import KernelSpec, Runtime

_LAYERS = 4
"""Slots have memory for a multiple of 4 layers, so that they are copied in pieces of 16 bytes."""

_COPYING = KernelSpec.of("store_kv", "copy_blocks", {"HEAD_DIM": 32, "KV_DTYPE": 0})


def slot_bytes(group: KVGroup) -> int:
    """Return the bytes of a slot."""
    return _layers(group) * group.state_bytes


def _layers(group: KVGroup) -> int:
    return -(-len(group.layers) // _LAYERS) * _LAYERS


class StateMemory(BlockPool):
    """Slots of one group.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(self, runtime: Runtime, group: KVGroup, num_slots: int) -> None:
        super().__init__(runtime, group, num_slots, slot_bytes(group), _COPYING)

    def states(self, table: int) -> States:
        """Return the states for kernels; ``table`` is `StepMemory.table` of the group."""
        return States(self._memory.pointer, table, _layers(self.group))
