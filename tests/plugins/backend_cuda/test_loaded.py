"""Weights that are moved between the card and main memory."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import Format
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.loaded import HostWeight, Item, Loaded, LoadedTable, Range
from llmd_backend_cuda.matrices import DeviceMatrix
from llmd_backend_cuda.runtime import Memory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents, load, lowered
from tests.plugins.backend_cuda.bench import PLAN

pytestmark = NEEDS_COMPILER


def memories(item: Item) -> list[Memory]:
    """Return the memories of a weight, in order."""
    if isinstance(item, DeviceMatrix):
        every = (item.low, item.high, item.scales, item.minimums, item.fine, item.row_scales)
        return [memory for memory in every if memory is not None]
    return [item.memory if isinstance(item, LoadedTable) else item]


@pytest.mark.parametrize("name", ["f16", "q8", "q4_k", "q6_k", "fp8"])
def test_a_copy_at_an_address_has_the_bytes_of_the_weight(name: Format) -> None:
    card = SimulatedCard()
    loaded = load(
        card, lowered(TinyModel(layers=1, hidden=256, ffn=256, head_dim=64).plan(), fmt=name)
    ).loaded
    items: list[Item] = [*loaded.matrices.values(), *loaded.tables.values(), *loaded.vectors.values()]
    assert len(items) > 8
    for item in items:
        copy = HostWeight.of(card, item)
        buffer = card.allocate(copy.contents.nbytes)
        card.upload(buffer, 0, copy.contents)
        placed = copy.at(buffer.pointer)
        assert type(placed) in {type(item), Range}
        for mine, other in zip(memories(placed), memories(item), strict=True):
            assert (mine.pointer - buffer.pointer) % 256 == 0
            first = mine.pointer - buffer.pointer
            found = contents(card, buffer, np.uint8, first, mine.num_bytes)
            np.testing.assert_array_equal(found, contents(card, other, np.uint8))


def test_streamed_weights_join_those_on_the_card() -> None:
    card = SimulatedCard()
    loaded = load(card, lowered(PLAN, streamed=(1,))).loaded
    items = {key: weight.at(0) for key, weight in loaded.streamed.items()}
    whole = load(card, lowered(PLAN)).loaded
    joined = loaded.joined(items)
    for mine, other in ((joined, whole), (Loaded.empty().joined({}), Loaded.empty())):
        assert mine.matrices.keys() == other.matrices.keys()
        assert mine.tables.keys() == other.tables.keys()
        assert mine.vectors.keys() == other.vectors.keys()
    assert loaded.matrices.keys() < joined.matrices.keys(), "nothing was added to the weights themselves"
    for (weight, use), item in items.items():
        assert joined.find(weight, use) == item
        assert loaded.find(weight, use) is None
