"""Slots of the states of recurrent layers."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KVGroup, MemoryBudgetError
from llmd_backend_cuda.state_memory import StateMemory, slot_bytes
from tests.cuda.one_instruction import upload
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard

pytestmark = NEEDS_COMPILER


def group_of(layers: int, state_bytes: int = 28) -> KVGroup:
    return KVGroup(2, None, 0, 0, tuple(range(layers)), kind="state", state_bytes=state_bytes)


def random_slots(count: int, num_bytes: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, num_bytes), np.uint8)


@pytest.fixture
def memory() -> StateMemory:
    return StateMemory(SimulatedCard(), group_of(2), 5)


@pytest.mark.parametrize(("layers", "num_bytes"), [(1, 112), (4, 112), (5, 224)])
def test_slots_have_memory_for_a_multiple_of_four_layers(layers: int, num_bytes: int) -> None:
    group = group_of(layers)
    assert slot_bytes(group) == num_bytes
    card = SimulatedCard()
    memory = StateMemory(card, group, 3)
    assert card.used_bytes == 3 * num_bytes
    assert memory.states(1234).layers == num_bytes // 28
    assert memory.states(1234).table == 1234


def test_states_are_zero_at_first(memory: StateMemory) -> None:
    assert not memory.read_blocks(np.arange(5, dtype=np.int32)).any()


def test_slots_return_what_was_written(memory: StateMemory) -> None:
    values = random_slots(3, 112)
    memory.write_blocks(np.array([4, 0, 2], np.int32), values)
    np.testing.assert_array_equal(memory.read_blocks(np.array([2, 4], np.int32)), values[[2, 0]])
    assert not memory.read_blocks(np.array([1, 3], np.int32)).any()


def test_slots_that_are_not_there_are_refused(memory: StateMemory) -> None:
    for slot in (5, -1):
        with pytest.raises(ValueError, match=r"outside 0..4"):
            memory.read_blocks(np.array([slot], np.int32))
        with pytest.raises(ValueError, match=r"outside 0..4"):
            memory.write_blocks(np.array([slot], np.int32), random_slots(1, 112))


@pytest.mark.parametrize(
    "values", [random_slots(2, 112), random_slots(1, 111), random_slots(1, 112).astype(np.int16)]
)
def test_contents_of_another_shape_or_type_are_refused(memory: StateMemory, values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected uint8 \(1, 112\)"):
        memory.write_blocks(np.zeros(1, np.int32), values)


def test_slots_are_copied_in_order_but_not_those_of_other_groups() -> None:
    card = SimulatedCard()
    memory = StateMemory(card, group_of(6, 4 * 1000), 5)
    values = random_slots(5, slot_bytes(memory.group))
    memory.write_blocks(np.arange(5, dtype=np.int32), values)
    copies = np.array([4, 2, 0, 1, 1, 1, 4, 2, 1, 3, 2, 4, 0], np.int32)  # the number, then (group, from, to)
    kept = upload(card, copies)
    card.launch(memory.copy_launch(kept.pointer, kept.pointer + 4))
    expected = values[[4, 0, 2, 0, 4]]
    np.testing.assert_array_equal(memory.read_blocks(np.arange(5, dtype=np.int32)), expected)


def test_no_slots_need_no_memory_to_speak_of() -> None:
    card = SimulatedCard()
    memory = StateMemory(card, group_of(2), 0)
    assert card.used_bytes <= 16
    assert memory.read_blocks(np.zeros(0, np.int32)).shape == (0, 112)


def test_too_many_slots_are_refused() -> None:
    with pytest.raises(MemoryBudgetError):
        StateMemory(SimulatedCard(memory_bytes=1000), group_of(4), 9)
