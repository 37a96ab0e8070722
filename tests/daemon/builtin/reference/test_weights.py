from __future__ import annotations

import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, Precision, WeightData
from llmd.builtin.reference.weights import make_matrix, quantize_row, to_float64
from llmd.models.formats.dequantization import dequantize
from llmd.testing.integer_weights import random_integers


def test_bf16_bits_are_widened_exactly() -> None:
    bits = np.array([0x3F80, 0xC040, 0x0001], np.uint16)
    assert to_float64(WeightData("bf16", bits)).tolist() == [1.0, -3.0, 2.0**-133]


def test_a_plain_matrix_multiplies() -> None:
    matrix = make_matrix(WeightData("f16", np.array([[1, 2], [3, 4]], np.float16)))
    assert matrix.multiply(np.array([1, 10], np.float32)).tolist() == [21.0, 43.0]


@pytest.mark.parametrize(("precision", "expected"), [("f32", 2.0**-8), ("f16", 2.0**-8), ("bf16", 0.0)])
def test_rows_are_rounded_to_the_type_of_their_weights(precision: Precision, expected: float) -> None:
    row = np.array([1 + 2**-8, 1], np.float32)
    plain = make_matrix(WeightData("f32", np.array([[1, -1]], np.float32)), "int8", precision)
    assert plain.multiply(row).tolist() == [expected]
    integers = random_integers("q8", (3, 64), 0.1, np.random.default_rng(4))
    numbers = dequantize(integers).astype(np.float64)
    row = np.full(64, 1 + 2**-8, np.float32)
    product = make_matrix(integers, precision, "f32").multiply(row)
    assert product == pytest.approx(numbers.sum(axis=1) * (1 + expected), rel=1e-12)


def test_rows_are_quantised_by_group_with_ties_to_even() -> None:
    groups = np.array([[127.0, 2.5, -3.5, 0.49], [0, 0, 0, 0]], np.float32)
    codes, scales = quantize_row(groups)
    assert codes.tolist() == [[127, 2, -4, 0], [0, 0, 0, 0]]
    assert scales.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *((name, 512) for name in INTEGER_FORMATS),
        *(
            (name, width)
            for name in OWN_FORMATS
            if not INTEGER_FORMATS[name].coarse_size
            for width in (64, 40, 200, 384)
        ),
    ],
)
def test_an_integer_matrix_multiplies_the_rounded_row(name: str, width: int) -> None:
    draw = np.random.default_rng(width)
    weight = random_integers(name, (5, width), 0.1, draw)
    x = draw.standard_normal(width).astype(np.float32)
    size = INTEGER_FORMATS[name].activation_group(width)
    codes, scales = quantize_row(
        np.pad(x, (0, -width % size)).reshape(-1, size), INTEGER_FORMATS[name].activation_limit
    )
    rounded = (codes * scales[:, None]).reshape(-1)[:width].astype(np.float64)
    expected = dequantize(weight).astype(np.float64) @ rounded
    assert make_matrix(weight).multiply(x) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    exact = dequantize(weight).astype(np.float64) @ x.astype(np.float64)
    assert make_matrix(weight, "f32").multiply(x).tolist() == exact.tolist()


def test_a_matrix_in_an_integer_format_is_looked_up_by_its_numbers() -> None:
    weight = random_integers("q4_k", (3, 256), 0.1, np.random.default_rng(3))
    assert to_float64(weight).tolist() == dequantize(weight).tolist()
