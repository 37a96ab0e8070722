from __future__ import annotations

import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, decode
from llmd.testing.sources import NEGATIVE, RandomSource

REF = TensorRef("w", (12, 70))


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "q8"])
def test_a_row_range_is_cut_from_the_same_weights(name: str) -> None:
    whole = RandomSource().read(Weight(REF, name))
    part = RandomSource().read(Weight(TensorRef("w", (12, 70), rows=(3, 7)), name))
    assert np.array_equal(part.data, whole.data[3:7])
    assert part.format == name


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_what_is_read_is_what_the_blocks_hold(name: str) -> None:
    weight = Weight(TensorRef("w", (12, 512), rows=(3, 7)), name)
    blocks, read = RandomSource().stored_blocks(weight), RandomSource().read(weight)
    assert blocks is not None
    for array, expected in zip(read.arrays, decode(name, blocks, 512).arrays, strict=True):
        np.testing.assert_array_equal(array, expected)
    spread = dequantize(read).std()
    assert 0.25 * 2 * 512**-0.5 < spread < 4 * 2 * 512**-0.5


def test_only_formats_of_files_have_blocks() -> None:
    assert RandomSource().stored_blocks(Weight(REF, "q8")) is None
    assert RandomSource().stored_blocks(Weight(REF, "f32")) is None


def test_names_and_seeds_draw_different_weights() -> None:
    drawn = [
        RandomSource(seed).read(Weight(TensorRef(name, (4, 4)), "f32")).data.tobytes()
        for seed, name in ((0, "a"), (0, "b"), (1, "a"))
    ]
    assert len(set(drawn)) == 3


def test_a_name_says_that_values_are_negative() -> None:
    values = [RandomSource().read(Weight(TensorRef(f"v{end}", (64,)), "f32")).data for end in ("", NEGATIVE)]
    assert values[0].min() > 0
    assert values[1].max() < 0


def test_bf16_rounds_to_nearest() -> None:
    exact = RandomSource().read(Weight(REF, "f32")).data.astype(np.float32)
    bits = RandomSource().read(Weight(REF, "bf16")).data.astype(np.uint32)
    assert np.max(np.abs((bits << 16).view(np.float32) / exact - 1)) <= 2.0**-8
