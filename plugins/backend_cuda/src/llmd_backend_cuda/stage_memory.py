"""Everything that a stage keeps in the device's memory besides weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from llmd.api import Attention, Indexer, Program, RopeTable, SlottedOp, StageLimits
from llmd_backend_cuda.adapter_memory import AdapterMemory, AdapterStep
from llmd_backend_cuda.attention_plan import AttentionScratch, AttentionShape
from llmd_backend_cuda.block_pool import BlockPool
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.expert_memory import ExpertMemory, ExpertSizes
from llmd_backend_cuda.kv_memory import KVMemory
from llmd_backend_cuda.loaded import PlacedWeights
from llmd_backend_cuda.ops.attention import AttentionMemory, slotted_shape
from llmd_backend_cuda.ops.compress import PartsOfGroup, part_groups
from llmd_backend_cuda.ops.embed import Table
from llmd_backend_cuda.ops.fastest import Fastest
from llmd_backend_cuda.ops.indexer import IndexerMemory, allocate_scores, index_groups
from llmd_backend_cuda.ops.linear import partial_bytes, rounded_bytes
from llmd_backend_cuda.ops.state_rows import StateRows, StateRowsSizes
from llmd_backend_cuda.ops.streams import stream_bytes
from llmd_backend_cuda.parts_memory import PartsMemory
from llmd_backend_cuda.programs import Memories
from llmd_backend_cuda.runtime import Memory, Runtime
from llmd_backend_cuda.state_memory import StateMemory
from llmd_backend_cuda.step_memory import StepMemory


class StageMemory:
    """KV pools, slots and scratch of a stage.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self,
        runtime: Runtime,
        program: Program,
        blocks: Mapping[int, int],
        limits: StageLimits,
        shapes: Sequence[AttentionShape],
    ) -> None:
        self._runtime = runtime
        self._program = program
        self.limits = limits
        self.step = StepMemory(runtime, program, limits, shapes)
        self.slots = [runtime.allocate(4 * limits.max_rows * width) for width in program.slot_widths]
        self.pools: dict[int, BlockPool] = {}
        indexed, of_parts = index_groups(program), part_groups(program)
        for group in program.groups:
            if group.layers and group.kind == "state":
                self.pools[group.id] = StateMemory(runtime, group, blocks[group.id])
            elif group.layers and group.id in of_parts:
                self.pools[group.id] = PartsMemory(runtime, group, blocks[group.id], limits.kv_dtype)
            elif group.layers:
                self.pools[group.id] = KVMemory(
                    runtime, group, blocks[group.id], limits.kv_dtype, is_index=group.id in indexed
                )
        self._scratch = AttentionScratch(runtime, shapes, limits, program.context_len)
        self._ropes = [_frequencies(runtime, table) for table in program.ropes]
        self._rounded = runtime.allocate(rounded_bytes(program, limits))
        self._partials = runtime.allocate(partial_bytes(limits, runtime.num_processors))
        self._experts = ExpertMemory.allocate(runtime, ExpertSizes.of(program, limits))
        self._scores = allocate_scores(runtime, program, limits)
        self._streams = runtime.allocate(stream_bytes(program, limits))
        self._state_rows = StateRows.allocate(runtime, StateRowsSizes.of(program, limits))

    def context(
        self,
        bucket: int,
        weights: PlacedWeights,
        fastest: Fastest = MappingProxyType({}),
    ) -> Context:
        """Return what the launches of a bucket need."""
        return Context(
            self._runtime,
            self._program,
            self.limits,
            self.step.args(bucket),
            self.slots,
            weights.vectors,
            self._ropes,
            weights.matrices,
            self._rounded,
            self._partials,
            fastest,
            weights.cached,
        )

    def memories(
        self, bucket: int, tables: Mapping[int, Table], adapters: AdapterMemory | None = None
    ) -> Memories:
        """Return what some ops of a bucket's launches need besides.

        ``adapters`` is for steps in which rows have adapters; None: for others.
        """
        attention, indexers, states, parts = {}, {}, {}, {}
        for slotted in self._program.ops:
            op = slotted.op
            if isinstance(op, Attention):
                attention[op.group, op.layer] = self._attention(bucket, slotted, op.group)
            elif isinstance(op, Indexer):
                table = self.step.table(op.group)
                indexers[op.group] = IndexerMemory(self._keys(op.group), table, self._scores)
        for number, pool in self.pools.items():
            if isinstance(pool, StateMemory):
                states[number] = pool.states(self.step.table(number))
            elif isinstance(pool, PartsMemory):
                parts[number] = PartsOfGroup(pool, self.step.table(number))
        step = None if adapters is None else AdapterStep(adapters, *self.step.adapters(bucket))
        memories = (tables, attention, indexers, states, parts)
        return Memories(*memories, self._experts, self._state_rows, self._streams, step)

    def _attention(self, bucket: int, slotted: SlottedOp, group: int) -> AttentionMemory:
        shape = slotted_shape(self._program, slotted)
        return AttentionMemory(
            self._keys(group),
            self.step.table(group),
            self.step.plan(bucket, shape),
            self.step.most_items(bucket, shape),
            self._scratch,
            shape,
        )

    def _keys(self, group: int) -> KVMemory:
        pool = self.pools[group]
        assert isinstance(pool, KVMemory), "attention and indexers have a paged or latent group"
        return pool


def _frequencies(runtime: Runtime, table: RopeTable) -> Memory:
    values = np.array(table.inv_freq, np.float64)
    memory = runtime.allocate(max(1, values.nbytes))
    runtime.upload(memory, 0, values)
    return memory
