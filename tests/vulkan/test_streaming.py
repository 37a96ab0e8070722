"""A model three times as large as a device's memory runs with streamed weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api import DeviceOptions, MemoryBudgetError
from llmd.api.device import HOST_MEMORY
from llmd.api.messages import Load
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import load_model
from llmd.engine.placement.automatic import with_devices
from llmd.engine.placement.memory_need import needs_of
from llmd.models.open_model import open_model
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.memory import Region
from llmd_backend_vulkan.vulkan import DISCRETE, Heap, PhysicalDevice
from tests.daemon.engine.placement.tiny_candidates import QUICK
from tests.golden.engines import Architectures, greedy_tokens
from tests.golden.models.llama import llama
from tests.golden.models.tiny import TinyModel
from tests.serving.machine import machine_of

pytestmark = pytest.mark.timeout(120)

DEEP = TinyModel(
    "deep",
    llama(hidden_size=128, intermediate_size=384, num_hidden_layers=12, num_attention_heads=8),
)
LAYER_BYTES = 4 * (2 * 128 * 128 + 2 * 128 * 32 + 3 * 128 * 384 + 2 * 128)
BUDGET = 12 * LAYER_BYTES // 3


class Card(VulkanDevice):
    """The device, as a card with little memory of its own."""

    def __init__(self, physical: PhysicalDevice, *, use_additions: bool) -> None:
        card = structs.replace(
            physical, kind=DISCRETE, pci="0000:01:00.0", heaps=(Heap(BUDGET, is_local=True),)
        )
        super().__init__(card, DeviceOptions(), use_additions=use_additions)
        self.most_bytes = 0
        arena = self._opened()
        take = arena.take

        def take_within_budget(num_words: int, *, alone: bool = False) -> Region:
            region = take(num_words, alone=alone)
            self.most_bytes = max(self.most_bytes, self.taken_bytes)
            if self.taken_bytes > BUDGET:
                raise MemoryBudgetError("the card is full", hint="stream weights")
            return region

        arena.take = take_within_budget  # type: ignore[method-assign]

    @property
    def taken_bytes(self) -> int:
        """Bytes that are in use."""
        arena = self._opened()
        return arena.num_bytes - arena.free_bytes

    def free_bytes(self) -> int:
        return BUDGET - self.taken_bytes


@pytest.fixture(params=[True, False], ids=["additions", "plain"])
def card(request: pytest.FixtureRequest, physical: PhysicalDevice) -> Card:
    """The card, with and without our additions to Kompute."""
    return Card(physical, use_additions=request.param)


def test_a_model_three_times_the_size_of_a_card_gives_the_tokens_of_the_reference(
    card: Card, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    load = Load(str(checkpoint(DEEP)), context_len=DEEP.context_len, slots=1, chunk_len=16, activations="f32")
    load = structs.replace(load, kv_dtype="f32")
    rates = {card.info.name: structs.replace(QUICK, stream_bytes_per_s=1e9)}
    machine = machine_of([card.info], rates, room=lambda _memory_id, num_bytes: num_bytes * 2 // 3)
    model = open_model(Path(load.directory), architectures, load.context_len)
    placed = with_devices(load, model, machine)
    needs = needs_of(placed, model, machine.info)
    model.checkpoint.close()
    assert {stage.device for stage in placed.stages} == {card.info.name}
    assert any(stage.streamed for stage in placed.stages)
    assert needs[HOST_MEMORY].weight_bytes > 2 * BUDGET

    assert tokens(placed, architectures, card) == tokens(
        structs.replace(load, device="reference"), architectures, ReferenceDevice()
    )
    assert 0 < card.most_bytes <= BUDGET


def tokens(load: Load, architectures: Architectures, device: VulkanDevice | ReferenceDevice) -> list[int]:
    """Return what the model says on a device."""
    model = load_model(load, architectures, lambda _name: device, lambda _: None)
    try:
        return greedy_tokens(model.core, DEEP)
    finally:
        model.close()
