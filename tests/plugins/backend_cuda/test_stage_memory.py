"""The memory of a stage: where launches find slots, pools and plans."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from llmd.api import MemoryBudgetError, StageLimits
from llmd.testing.compressed_cases import compressed_cases
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.kv_memory import KVMemory
from llmd_backend_cuda.loaded import Loaded, PlacedWeights
from llmd_backend_cuda.ops.embed import Table
from llmd_backend_cuda.parts_memory import PartsMemory
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage_memory import StageMemory
from llmd_backend_cuda.state_memory import StateMemory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents, lowered

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=9, max_sequences=2, max_outputs=3, kv_dtype="int8")
PLAN = TinyModel(hybrid=True, layers=4).plan()
PROGRAM = lowered(PLAN)
BLOCKS = {0: 4, 1: 5, 2: 6}


def allocate(card: SimulatedCard, first: int = 0, last: int | None = None) -> StageMemory:
    program = lowered(PLAN, first, last)
    return StageMemory(card, program, BLOCKS, LIMITS, attention_shapes(program))


def test_each_group_has_its_pool() -> None:
    pools = allocate(SimulatedCard()).pools
    assert [type(pools[group]) for group in (0, 1, 2)] == [KVMemory, KVMemory, StateMemory]
    assert [pools[group].num_blocks for group in (0, 1, 2)] == [4, 5, 6]
    full = pools[0]
    assert isinstance(full, KVMemory)
    assert full.kv_dtype == "int8"


def test_what_vectors_are_made_of_has_a_pool_of_its_own() -> None:
    case = next(case for case in compressed_cases() if case.name == "merge_attention/chosen-f16")
    program = lowered(case.plan, case.first_part, case.last_part)
    limits = StageLimits(max_rows=9, max_sequences=2, max_outputs=3)
    shapes = attention_shapes(program)
    memory = StageMemory(SimulatedCard(), program, dict.fromkeys(range(4), 3), limits, shapes)
    assert [type(memory.pools[group]) for group in range(4)] == [PartsMemory, KVMemory, KVMemory, KVMemory]
    found = memory.memories(8, {})
    assert found.parts.keys() == {0}
    assert found.parts[0].memory is memory.pools[0]
    assert found.indexers.keys() == {3}
    assert found.attention.keys() == {(1, 0), (2, 0)}


def test_groups_of_other_stages_have_none() -> None:
    layer = PLAN.layer_parts(1, 2)
    assert allocate(SimulatedCard(), *layer).pools.keys() == {1}
    assert allocate(SimulatedCard(), 0, 1).pools == {}


def test_slots_have_rows_of_float32() -> None:
    slots = allocate(SimulatedCard()).slots
    assert [slot.num_bytes for slot in slots] == [4 * 9 * width for width in PROGRAM.slot_widths]


def test_each_attention_layer_has_its_memory() -> None:
    memory = allocate(SimulatedCard())
    found = memory.memories(8, {0: Table(64, "f16")})
    assert found.attention.keys() == {(0, 0), (1, 1)}
    assert found.states.keys() == {2}
    assert found.tables == {0: Table(64, "f16")}
    full, window = found.attention[0, 0], found.attention[1, 1]
    assert full.kv is memory.pools[0]
    assert full.scratch is window.scratch
    assert len({full.block_table, window.block_table, found.states[2].table}) == 3
    assert full.plan != window.plan
    assert memory.memories(9, {}).attention[0, 0].block_table == full.block_table


def test_a_context_has_the_addresses_of_its_bucket() -> None:
    card = SimulatedCard()
    memory = allocate(card)
    weights = PlacedWeights.of(PROGRAM, Loaded.empty())
    small, large = (memory.context(bucket, weights) for bucket in (1, 9))
    assert small.step.counts == large.step.counts
    assert small.step.positions != large.step.positions
    assert small.slots == large.slots
    assert small.rounded is large.rounded
    (rope,) = small.ropes
    np.testing.assert_array_equal(contents(card, rope, np.float64), PROGRAM.ropes[0].inv_freq)


def test_what_does_not_fit_is_refused_and_leaves_nothing() -> None:
    card = SimulatedCard()
    needed = allocate(card)
    most = card.used_bytes
    del needed
    gc.collect()
    assert card.used_bytes == 0
    card.memory_bytes = most - 1
    with pytest.raises(MemoryBudgetError):
        allocate(card)
    gc.collect()
    assert card.used_bytes == 0
    card.memory_bytes = most
    allocate(card)
