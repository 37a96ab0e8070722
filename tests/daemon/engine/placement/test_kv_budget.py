from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from llmd.api import DeviceOptions, KVGroup, MemoryBudgetError, StageLimits
from llmd.api.messages import Load
from llmd.api.step import BLOCK_LEN
from llmd.engine.placement.kv_budget import KVBudget, KVMemory, kv_memories, plan_kv
from llmd.engine.placement.memory_use import MemoryUse
from llmd.models.lowering import lower
from llmd.pager.block_counts import most_blocks
from llmd.pager.states import pool_slots
from llmd.testing.null_device import NullDevice, NullWeights
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource

FULL, WINDOW = KVGroup(0, None, 1, 8, (0,)), KVGroup(1, 64, 1, 8, (1,))
GIB = 1 << 30


def plan(*memories: KVMemory, slots: int = 4, total_bytes: int | None = None) -> KVBudget:
    return plan_kv(
        (FULL, WINDOW), memories, slots=slots, context_len=1024, chunk_len=256, total_bytes=total_bytes
    )


def memory(budget_bytes: int, full: int = 100, window: int = 10, name: str = "host") -> KVMemory:
    return KVMemory(name, (full, window), budget_bytes)


def test_pools_hold_every_slot_at_full_context_where_memory_allows() -> None:
    budget = plan(memory(1 << 30))
    window_blocks = 4 * most_blocks(WINDOW, 1024, 256)
    assert budget == KVBudget((256, window_blocks), 25600 + 10 * window_blocks, 1024)


def test_the_budget_is_never_exceeded_and_used_to_the_last_block() -> None:
    for budget_bytes in range(110, 30_000, 777):
        budget = plan(memory(budget_bytes))
        assert budget.total_bytes <= budget_bytes
        assert budget.total_bytes > budget_bytes - 110 or budget.num_blocks[0] == 256


def test_a_small_pool_says_how_long_a_sequence_it_holds() -> None:
    assert plan(memory(110 * 10)).max_tokens == 160


def test_no_room_for_a_block_is_an_error_with_both_figures() -> None:
    with pytest.raises(MemoryBudgetError, match=r"takes 110 B \(16 tokens\), the budget is 50 B"):
        plan(memory(50))
    with pytest.raises(
        MemoryBudgetError, match=r"takes 110 B in memory card \(16 tokens\), the budget is 50 B"
    ):
        plan(memory(1000), memory(50, name="card"))
    with pytest.raises(MemoryBudgetError, match=r"takes 220 B \(16 tokens\), the budget is 219 B"):
        plan(memory(1000), memory(1000, name="card"), total_bytes=219)


def test_a_small_memory_with_few_layers_does_not_limit_a_large_one_with_many() -> None:
    layer = BLOCK_LEN * 4096  # 8 heads of 128 f16 elements, keys and values
    budget = plan_kv(
        (KVGroup(0, None, 8, 128, tuple(range(32))),),
        (KVMemory("first", (28 * layer,), 20 * GIB), KVMemory("second", (4 * layer,), 2 * GIB)),
        slots=8,
        context_len=131_072,
        chunk_len=256,
    )
    assert budget.max_tokens == 131_072


def largest(memories: Sequence[KVMemory], slots: int, total_bytes: int) -> int:
    """The most blocks of the full group that fit, tried one by one."""
    windows = slots * most_blocks(WINDOW, 1024, 256)

    def bytes_of(one: KVMemory, blocks: int) -> int:
        return blocks * one.block_bytes[0] + min(windows, blocks) * one.block_bytes[1]

    fitting = (
        blocks
        for blocks in range(slots * 64 + 1)
        if all(bytes_of(one, blocks) <= one.budget_bytes for one in memories)
        and sum(bytes_of(one, blocks) for one in memories) <= total_bytes
    )
    return max(fitting)


SIZES = st.integers(0, 200)
MEMORIES = st.lists(st.builds(memory, st.integers(0, 40_000), full=SIZES, window=SIZES), max_size=4)


@given(memories=MEMORIES, slots=st.integers(1, 5), total_bytes=st.integers(0, 90_000))
def test_the_tokens_are_the_most_that_every_memory_and_the_total_allow(
    memories: list[KVMemory], slots: int, total_bytes: int
) -> None:
    memories.append(memory(1 << 40))
    expected = largest(memories, slots, total_bytes)
    if expected == 0:
        with pytest.raises(MemoryBudgetError):
            plan(*memories, slots=slots, total_bytes=total_bytes)
    else:
        assert plan(*memories, slots=slots, total_bytes=total_bytes).num_blocks[0] == expected


class Placed:
    """A small model over null devices: each runs some ranges of parts, for example the head alone."""

    def __init__(
        self,
        rooms: Mapping[str, int],
        cuts: Mapping[int, str],
        window: int | None,
        **load: object,
    ) -> None:
        """``rooms`` has the bytes of each device that weights and step buffers leave, ``cuts`` the first part
        of each stage and the stage's device.
        """
        self.plan = TinyModel(layers=6, window=window, context_len=256).plan()
        self.limits = StageLimits(max_rows=20, max_sequences=5, max_outputs=6, kv_dtype="f32")
        self.rooms = rooms
        self.devices = {name: NullDevice(lambda: 0.0, name=name) for name in rooms}
        self.load = Load("", slots=4, **load)  # type: ignore[arg-type]
        self.stages = list(self._load_stages(cuts))
        for name, room in rooms.items():
            size = room + sum(use.weight_bytes + use.step_bytes for use in self._uses(name))
            device = self.devices[name]
            device.info = structs.replace(device.info, memory_bytes=size)

    def _load_stages(self, cuts: Mapping[int, str]) -> list[tuple[NullDevice, NullWeights, MemoryUse]]:
        bounds = [*cuts, len(self.plan.parts)]
        stages = []
        for (first, last), name in zip(itertools.pairwise(bounds), cuts.values(), strict=True):
            program = lower(self.plan, first, last, format_of=lambda _kind, _ref: "f32")
            device = self.devices[name]
            weights = device.load(program, RandomSource(), lambda _done, _total: None)
            use = MemoryUse.of(device, program, weights, self.limits)
            assert use.weight_bytes == sum(weight.num_bytes for weight in program.weights)
            stages.append((device, weights, use))
        return stages

    def budget(self) -> KVBudget:
        return plan_kv(
            self.plan.groups,
            kv_memories(self.load, [(device, use) for device, _, use in self.stages]),
            slots=4,
            context_len=256,
            chunk_len=32,
            total_bytes=self.load.kv_memory,
        )

    def blocks(self, full: int) -> tuple[int, ...]:
        return tuple(min(full, 4 * most_blocks(group, 256, 32)) for group in self.plan.groups)

    def pools(self, name: str, full: int) -> int:
        """The bytes of the pools on a device: a null device takes 1024 bytes for each layer."""
        layers = [
            (group, sum(1 for use in self._uses(name) for _ in range(use.block_bytes[group] // 1024)))
            for group in range(len(self.plan.groups))
        ]
        return sum(1024 * count * self.blocks(full)[group] for group, count in layers)

    def most(self, shares: Mapping[str, int], total_bytes: int) -> int:
        """The most blocks of a full group whose pools fit the shares of the devices, tried one by one."""
        return max(
            full
            for full in range(4 * 16 + 1)
            if all(self.pools(name, full) <= share for name, share in shares.items())
            and sum(self.pools(name, full) for name in shares) <= total_bytes
        )

    def open_stages(self, full: int) -> None:
        """Open every stage, then close all; raises if a memory is too small."""
        opened = []
        try:
            for _, weights, use in self.stages:
                blocks = {g: n for g, n in enumerate(self.blocks(full)) if use.block_bytes[g]}
                opened.append(weights.stage(blocks, self.limits))
        finally:
            for stage in opened:
                stage.close()

    def _uses(self, name: str) -> list[MemoryUse]:
        return [use for _, _, use in self.stages if use.memory_id == name]


WHOLE = {0: "a", 7: "b"}
APART = {0: "a", 1: "b", 9: "a", 13: "b"}
"""The embedding and two layers on one device, the other layers and the head on the other."""
HALVES = {0: "b", 2: "a", 7: "b", 8: "a", 13: "b"}
"""Mixers and feed-forward parts of a layer apart."""


@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("cuts", [WHOLE, APART, HALVES])
@pytest.mark.parametrize(("a", "b"), [(20_000, 900_000), (700_000, 60_000), (2 << 20, 2 << 20)])
def test_two_memories_share_a_model_as_an_exact_calculation_says(
    a: int, b: int, cuts: dict[int, str], window: int | None
) -> None:
    placed = Placed({"a": a, "b": b}, cuts, window)
    halves = {name: room // 2 for name, room in placed.rooms.items()}
    assert placed.budget().num_blocks == placed.blocks(placed.most(halves, 1 << 62))


@pytest.mark.parametrize("window", [None, 20])
def test_memory_for_keys_and_values_counts_all_memories_and_each_keeps_its_own_limit(
    window: int | None,
) -> None:
    rooms = {"a": 50_000, "b": 900_000}
    for kv_memory in (100_000, 120_000, 1 << 30):
        placed = Placed(rooms, APART, window, kv_memory=kv_memory)
        full = placed.most(rooms, kv_memory)
        budget = placed.budget()
        assert budget.num_blocks == placed.blocks(full)
        assert budget.total_bytes == sum(placed.pools(name, full) for name in rooms) <= kv_memory
    placed.open_stages(full)
    with pytest.raises(MemoryBudgetError):
        placed.open_stages(full + 1)


@pytest.mark.parametrize("below", [80_000, 130_000])
def test_a_limit_of_a_device_counts_weights_and_steps_and_is_used_in_full(below: int) -> None:
    rooms = {"a": 150_000, "b": 1 << 20}
    unlimited = Placed(rooms, APART, None)
    limit = unlimited.devices["a"].info.memory_bytes - below
    placed = Placed(rooms, APART, None, device_options={"a": DeviceOptions(memory_bytes=limit)})
    most = placed.most({"a": rooms["a"] - below, "b": rooms["b"] // 2}, 1 << 62)
    assert placed.budget().num_blocks == placed.blocks(most)
    assert most != unlimited.budget().num_blocks[0]


def test_a_limit_below_the_weights_is_an_error_that_names_the_memory() -> None:
    options = {"b": DeviceOptions(memory_bytes=1000)}
    placed = Placed({"a": 1 << 20, "b": 1 << 20}, WHOLE, None, device_options=options)
    with pytest.raises(MemoryBudgetError, match=r"exceed the limit of 1000 B in memory b \("):
        placed.budget()


@pytest.mark.parametrize("budget_bytes", [100_000, 20_000])
def test_states_of_all_slots_come_before_blocks(budget_bytes: int) -> None:
    state = KVGroup(1, None, 0, 0, (1,), kind="state", state_bytes=500)
    slots, depth = 3, 4
    budget = plan_kv(
        (FULL, state),
        [KVMemory("host", (100, 500), budget_bytes)],
        slots=slots,
        context_len=1024,
        chunk_len=256,
        depth=depth,
    )
    left = budget_bytes - pool_slots(slots, depth) * 500
    assert budget.num_blocks == (min(left // 100, slots * 64), pool_slots(slots, depth))
    assert budget.total_bytes <= budget_bytes
