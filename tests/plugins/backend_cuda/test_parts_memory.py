"""Blocks of what vectors for several tokens are made of."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KVDtype, KVGroup, MemoryBudgetError
from llmd_backend_cuda.parts_memory import PartsMemory, parts_bytes
from tests.cuda.one_instruction import upload
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard

pytestmark = NEEDS_COMPILER

GROUP = KVGroup(2, 8, 1, 20, (0, 3, 5), kind="latent")
ALL = np.arange(5, dtype=np.int32)


@pytest.mark.parametrize(("kv_dtype", "size"), [("f32", 4), ("f16", 2), ("bf16", 2)])
def test_a_block_has_16_tokens_of_all_layers(kv_dtype: KVDtype, size: int) -> None:
    card = SimulatedCard()
    memory = PartsMemory(card, GROUP, 5, kv_dtype)
    assert memory.block_bytes == parts_bytes(GROUP, kv_dtype) == 3 * 16 * 20 * size
    assert card.used_bytes == 5 * memory.block_bytes
    assert memory.args(2, 77).layer_at == 2 * 16 * 20 * size
    assert memory.args(2, 77).block_table == 77
    assert not memory.read_blocks(ALL).any()


def test_blocks_are_copied_and_written() -> None:
    card = SimulatedCard()
    memory = PartsMemory(card, GROUP, 5, "bf16")
    values = np.random.default_rng(1).integers(0, 256, (5, memory.block_bytes), np.uint8)
    memory.write_blocks(ALL, values)
    kept = upload(card, np.array([2, 2, 0, 1, 1, 3, 4], np.int32))  # the number, then (group, from, to)
    card.launch(memory.copy_launch(kept.pointer, kept.pointer + 4))
    np.testing.assert_array_equal(memory.read_blocks(ALL), values[[0, 0, 2, 3, 4]])


def test_other_types_and_too_many_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="parts of vectors in int8 are not supported"):
        parts_bytes(GROUP, "int8")
    with pytest.raises(MemoryBudgetError):
        PartsMemory(SimulatedCard(memory_bytes=1000), GROUP, 5, "f16")
