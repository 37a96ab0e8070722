from __future__ import annotations

import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.testing.sources import RandomSource

REF = TensorRef("w", (12, 70))


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "q8"])
def test_a_row_range_is_cut_from_the_same_weights(name: str) -> None:
    whole = RandomSource().read(Weight(REF, name))
    part = RandomSource().read(Weight(TensorRef("w", (12, 70), rows=(3, 7)), name))
    assert np.array_equal(part.data, whole.data[3:7])
    assert part.format == name


def test_names_and_seeds_draw_different_weights() -> None:
    drawn = [
        RandomSource(seed).read(Weight(TensorRef(name, (4, 4)), "f32")).data.tobytes()
        for seed, name in ((0, "a"), (0, "b"), (1, "a"))
    ]
    assert len(set(drawn)) == 3


def test_bf16_rounds_to_nearest() -> None:
    exact = RandomSource().read(Weight(REF, "f32")).data.astype(np.float32)
    bits = RandomSource().read(Weight(REF, "bf16")).data.astype(np.uint32)
    assert np.max(np.abs((bits << 16).view(np.float32) / exact - 1)) <= 2.0**-8
