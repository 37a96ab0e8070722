"""Memory for the rows of experts."""

from __future__ import annotations

import msgspec

from llmd.api import StageLimits
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.expert_memory import ExpertMemory, ExpertSizes
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, lowered

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=10, max_sequences=2, max_outputs=3)


def test_a_mixture_has_memory_for_each_row_of_each_of_its_experts() -> None:
    sizes = ExpertSizes.of(lowered(TinyModel(experts=6, top_k=3, hidden=40, ffn=72).plan()), LIMITS)
    assert sizes.products == sizes.places == 4 * 10 * 6
    assert sizes.groups == 16 * 30
    assert sizes.row_numbers == 4 * 30
    assert sizes.outputs == 4 * 30 * 40
    card = SimulatedCard()
    memory = ExpertMemory.allocate(card, sizes)
    assert card.used_bytes == sizes.num_bytes
    found = [one.num_bytes for one in msgspec.structs.astuple(memory)]
    assert found == list(msgspec.structs.astuple(sizes))


def test_models_without_experts_need_none() -> None:
    assert ExpertSizes.of(lowered(TinyModel().plan()), LIMITS).num_bytes == 0
