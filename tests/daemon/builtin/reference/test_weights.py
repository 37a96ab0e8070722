from __future__ import annotations

import numpy as np
import pytest

from llmd.api import WeightData
from llmd.builtin.reference.weights import make_matrix, quantize_row, to_float64
from llmd.models.quantization import dequantize_q8, quantize_q8


def test_bf16_bits_are_widened_exactly() -> None:
    bits = np.array([0x3F80, 0xC040, 0x0001], np.uint16)
    assert to_float64(WeightData("bf16", bits)).tolist() == [1.0, -3.0, 2.0**-133]


def test_a_plain_matrix_multiplies() -> None:
    matrix = make_matrix(WeightData("f16", np.array([[1, 2], [3, 4]], np.float16)))
    assert matrix.multiply(np.array([1, 10], np.float32)).tolist() == [21.0, 43.0]


def test_rows_are_quantised_by_group_with_ties_to_even() -> None:
    groups = np.array([[127.0, 2.5, -3.5, 0.49], [0, 0, 0, 0]], np.float32)
    codes, scales = quantize_row(groups)
    assert codes.tolist() == [[127, 2, -4, 0], [0, 0, 0, 0]]
    assert scales.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("width", [64, 40, 200])
def test_q8_is_the_integer_product_of_codes(width: int) -> None:
    draw = np.random.default_rng(width)
    weight = quantize_q8(draw.standard_normal((5, width)).astype(np.float32))
    x = draw.standard_normal(width).astype(np.float32)
    size = weight.group_size
    groups = np.pad(x, (0, -width % size)).reshape(-1, size)
    codes, scales = quantize_row(groups)
    rounded = (codes * scales[:, None]).reshape(-1)[:width].astype(np.float64)
    expected = dequantize_q8(weight).astype(np.float64) @ rounded
    assert make_matrix(weight).multiply(x) == pytest.approx(expected, rel=1e-6)
