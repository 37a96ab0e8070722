from __future__ import annotations

import numpy as np

from llmd.api import GroupScales, WeightData
from llmd.models.formats.dequantization import dequantize


def test_a_weight_is_its_integer_times_its_scale_plus_its_minimum() -> None:
    codes = np.arange(12, dtype=np.uint8).reshape(2, 6)
    scales = GroupScales(np.array([[1, 2], [0.5, 4]], np.float16))
    minimums = GroupScales(np.array([[0, -1], [10, 0]], np.float16))
    found = dequantize(WeightData("q4", codes, scales, minimums, group_size=4))
    assert found.tolist() == [[0, 1, 2, 3, 7, 9], [13, 13.5, 14, 14.5, 40, 44]]


def test_the_sum_is_rounded_once() -> None:
    scales = GroupScales(np.array([[2.0**-14 * 1023 / 512]], np.float16))
    minimums = GroupScales(np.array([[1.0]], np.float16))
    found = dequantize(WeightData("q4", np.array([[13]], np.uint8), scales, minimums, group_size=64))
    assert found[0, 0] == np.float32(13 * 2.0**-14 * 1023 / 512 + 1.0)


def test_rows_of_several_chunks_are_as_those_of_one() -> None:
    draw = np.random.default_rng(2)
    codes = draw.integers(0, 256, (3000, 96), dtype=np.uint8)
    weight = WeightData("q8", codes, GroupScales(draw.random((3000, 3)).astype(np.float16)), group_size=32)
    whole = dequantize(weight)
    np.testing.assert_array_equal(whole[2500:2510], dequantize(weight.rows(slice(2500, 2510))))
