from __future__ import annotations

import numpy as np
import pytest

from llmd.api import GroupScales, Outliers, TensorRef, Weight, WeightData
from llmd.models.formats.quantization import quantize


def test_a_row_range_cuts_the_first_axis() -> None:
    assert TensorRef("qkv", (12, 7)).view_shape == (12, 7)
    assert TensorRef("qkv", (12, 7), rows=(4, 6)).view_shape == (2, 7)
    assert TensorRef("bias", (12,), rows=(4, 6)).view_shape == (2,)


def test_rows_with_a_period_are_those_of_each_run() -> None:
    whole = np.arange(24).reshape(12, 2)
    ref = TensorRef("fused", (12, 2), rows=(1, 3), period=4)
    assert ref.view_shape == ref.data_shape == (6, 2)
    assert ref.part_of(whole)[:, 0].tolist() == [2, 4, 10, 12, 18, 20]


def test_the_matrices_of_a_stack_are_one_below_the_other() -> None:
    whole = np.arange(48).reshape(4, 6, 2)
    stack = TensorRef("experts.*.up", (4, 6, 2), is_stack=True)
    assert stack.is_matrix
    assert (stack.view_shape, stack.data_shape) == ((4, 6, 2), (24, 2))
    odd = TensorRef("up", (4, 6, 2), rows=(1, 2), period=2, is_stack=True, members=(1, 3))
    assert (odd.view_shape, odd.data_shape) == ((2, 3, 2), (6, 2))
    assert odd.part_of(whole)[:, 0].tolist() == [14, 18, 22, 26, 30, 34]
    assert stack.member(3).part_of(whole).tolist() == whole[3].tolist()
    assert np.shares_memory(stack.member(3).part_of(whole), whole)


def test_transposed_matrices_are_turned_before_rows_are_cut() -> None:
    whole = np.arange(24).reshape(2, 3, 4)
    ref = TensorRef("up", (2, 3, 4), rows=(1, 2), period=2, is_stack=True, is_transposed=True)
    assert (ref.whole_shape, ref.view_shape, ref.data_shape) == ((2, 4, 3), (2, 2, 3), (4, 3))
    assert ref.part_of(whole).tolist() == [[1, 5, 9], [3, 7, 11], [13, 17, 21], [15, 19, 23]]
    assert ref.member(1).part_of(whole).tolist() == [[13, 17, 21], [15, 19, 23]]


def test_the_vectors_of_a_stack_are_rows() -> None:
    whole = np.arange(12).reshape(3, 4)
    biases = TensorRef("bias", (3, 4), rows=(0, 1), period=2, is_stack=True)
    assert not biases.is_matrix
    assert biases.view_shape == biases.data_shape == (3, 2)
    assert biases.part_of(whole).tolist() == [[0, 2], [4, 6], [8, 10]]
    assert Weight(biases, "f32").num_bytes == 24


def test_scales_of_two_levels_are_their_exact_product() -> None:
    coarse = np.array([[0.3, 65504.0], [2.0**-24, 1.0]], np.float16)
    fine = np.array([[-32, 63, 31], [1, 2, 127]], np.int8)
    expected = coarse.astype(np.float64)[:, [0, 0, 1]] * fine
    assert GroupScales(coarse, fine).values().tolist() == expected.tolist()
    assert GroupScales(coarse).values().tolist() == coarse.tolist()


@pytest.mark.parametrize(
    ("name", "codes", "integers"),
    [
        ("q8", [0, 1, 128, 255], [-128, -127, 0, 127]),
        ("q4", [0, 1, 15], [0, 1, 15]),
        ("q3_k", [0, 4, 7], [-4, 0, 3]),
        ("iq4_nl", [0, 8, 15], [-127, 1, 113]),
        ("mxfp4", [7, 8, 15], [12, 0, -12]),
    ],
)
def test_codes_stand_for_integers(name: str, codes: list[int], integers: list[int]) -> None:
    weight = WeightData(name, np.array([codes], np.uint8), GroupScales(np.ones((1, 1), np.float16)))
    assert weight.integers().dtype == np.int8
    assert weight.integers().tolist() == [integers]


def test_outliers_reach_farther_than_codes() -> None:
    outliers = Outliers(
        np.array([[[3, 0, 255, 255], [43, 0, 0, 0]]], np.uint8),
        np.array([[[127, 0, -1, -127], [-2, 0, 0, 0]]], np.int8),
    )
    codes = np.full((1, 300), 128, np.uint8)
    codes[0, 3] = 255
    weight = WeightData("q8_wide", codes, GroupScales(np.ones((1, 2), np.float16)), None, 256, outliers)
    expected = np.zeros((1, 300))
    expected[0, [3, 255, 299]] = 127 + 8 * 127, -8 * 128, -16
    assert weight.integers().tolist() == expected.tolist()
    assert weight.rows(slice(0, 1)).integers().tolist() == expected.tolist()
    assert len(weight.arrays) == 4


@pytest.mark.parametrize("row_len", [128, 96, 40])
def test_the_size_of_a_q8_weight_is_that_of_its_arrays(row_len: int) -> None:
    quantized = quantize(np.ones((6, row_len), np.float32), "q8")
    weight = Weight(TensorRef("w", (9, row_len), (2, 8)), "q8")
    assert weight.num_bytes == sum(array.nbytes for array in quantized.arrays)


@pytest.mark.parametrize(("stored", "num_bytes"), [("f32", 64), ("f16", 32), ("bf16", 32)])
def test_the_size_of_a_plain_weight_is_that_of_its_elements(stored: str, num_bytes: int) -> None:
    assert Weight(TensorRef("matrix", (4, 4)), stored).num_bytes == num_bytes


def test_columns_of_transposed_matrices_are_a_range_of_their_inputs() -> None:
    whole = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    ref = TensorRef("kv_b", (2, 5, 3), is_stack=True, is_transposed=True, columns=(1, 4))
    assert ref.view_shape == (2, 3, 3)
    assert ref.data_shape == (6, 3)
    expected = np.concatenate([matrix[1:4].T for matrix in whole])
    assert ref.part_of(whole).tolist() == expected.tolist()
    assert ref.member(1).part_of(whole).tolist() == whole[1, 1:4].T.tolist()
    assert ref.as_stored.part_of(whole).tolist() == whole[:, 1:4].reshape(6, 3).tolist()
