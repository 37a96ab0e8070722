"""What adapters have in the memory of a card."""

from __future__ import annotations

import ctypes

import numpy as np

from llmd.api import StageLimits
from llmd.api.adapter_items import adapt_ops
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.adapter_memory import AdapterMemory, ChangeArgs
from llmd_backend_cuda.loaded import PlacedWeights
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage_memory import StageMemory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents, load, lowered

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=9, max_sequences=2, max_outputs=3)
PROGRAM = lowered(adapted_model())


def test_each_change_says_where_its_matrices_and_its_output_are() -> None:
    card = SimulatedCard()
    weights = PlacedWeights.of(PROGRAM, load(card, PROGRAM).loaded)
    memory = StageMemory(card, PROGRAM, {0: 1, 1: 1}, LIMITS, attention_shapes(PROGRAM))
    context, before = memory.context(9, weights), card.used_bytes
    adapters = AdapterMemory.of(context, weights.tables)
    assert card.used_bytes - before == AdapterMemory.num_bytes(PROGRAM, LIMITS)
    for slotted, op in adapt_ops(PROGRAM):
        stored, count = contents(card, adapters.changes[slotted], np.uint8).tobytes(), len(op.outs)
        assert len(stored) == ctypes.sizeof(ChangeArgs) * 2 * count
        changes = (ChangeArgs * (2 * count)).from_buffer_copy(stored)
        in_first_layer = op.factors[0][1] is not None  # the second adapter changes no other
        assert [one.rank for one in changes] == [4] * count + [9 * in_first_layer] * count
        places = [context.slot(slot) for slot in slotted.outputs]
        assert [one.out for one in changes] == places + (places if in_first_layer else [None] * count)
        assert changes[0].a == weights.tables[slotted.weights[0] or 0].pointer
        assert changes[0].b == weights.tables[slotted.weights[1] or 0].pointer
        assert [one.first for one in changes[:count]] == [4 * number for number in range(count)]


def test_scratch_has_the_ranks_of_the_largest_op() -> None:
    card = SimulatedCard()
    weights = PlacedWeights.of(PROGRAM, load(card, PROGRAM).loaded)
    memory = StageMemory(card, PROGRAM, {0: 1, 1: 1}, LIMITS, attention_shapes(PROGRAM))
    found = AdapterMemory.of(memory.context(9, weights), weights.tables)
    assert found.middle.num_bytes == 4 * 2 * 8 * 27, (
        "two items of eight rows, ranks of queries, keys and values"
    )


def test_models_without_adapters_need_none() -> None:
    assert AdapterMemory.num_bytes(lowered(TinyModel().plan()), LIMITS) == 0
