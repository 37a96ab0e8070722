from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.models.plain_formats import from_float32, to_float32
from llmd.models.quantization import dequantize_q8, quantize_q8

Float32 = NDArray[np.float32]


def random_weight(rows: int, row_len: int, scale: float = 0.02) -> Float32:
    return (np.random.default_rng(1).standard_normal((rows, row_len)) * scale).astype(np.float32)


@pytest.mark.parametrize(("row_len", "size"), [(64, 64), (2048, 64), (96, 32), (32, 32), (40, 32), (7, 32)])
def test_groups_have_64_elements_or_32_where_64_does_not_divide(row_len: int, size: int) -> None:
    quantized = quantize_q8(random_weight(2, row_len))
    assert quantized.group_size == size
    assert quantized.scales is not None
    assert quantized.scales.coarse.shape == (2, -(-row_len // size))
    assert quantized.data.shape == (2, row_len)


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("row_len", [64, 96, 40])
def test_follows_the_definition_element_by_element(source: str, row_len: int) -> None:
    data = from_float32(random_weight(5, row_len), source)
    values = to_float32(data, source)
    quantized = quantize_q8(data, source)
    assert quantized.scales is not None
    for row in range(5):
        for group in range(quantized.scales.coarse.shape[1]):
            part = slice(group * quantized.group_size, (group + 1) * quantized.group_size)
            scale = np.float16(np.abs(values[row, part]).max() / np.float32(127))
            assert quantized.scales.coarse[row, group] == scale
            expected = [round(float(w / np.float32(scale))) for w in values[row, part]]
            assert quantized.integers()[row, part].tolist() == expected


@pytest.mark.parametrize("scale", [1e4, 1.0, 0.02, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_no_element_is_off_by_more_than_half_a_step(scale: float) -> None:
    values = random_weight(64, 192, scale)
    quantized = quantize_q8(values)
    assert quantized.scales is not None
    steps = np.repeat(quantized.scales.values(), 64, axis=1)
    assert (np.abs(dequantize_q8(quantized) - values) <= steps * 0.501).all()
    assert np.abs(quantized.integers().astype(int)).max() <= 127


def test_a_row_is_quantised_alike_in_any_company() -> None:
    values = random_weight(3000, 128)
    whole = quantize_q8(values)
    alone = quantize_q8(values[1234:1235])
    np.testing.assert_array_equal(whole.data[1234:1235], alone.data)


def test_a_group_of_zeros_is_zero() -> None:
    values = np.zeros((2, 64), np.float32)
    values[1, 3] = -0.0
    quantized = quantize_q8(values)
    assert quantized.scales is not None
    assert not quantized.scales.coarse.any()
    assert not dequantize_q8(quantized).any()


def test_a_scale_too_small_for_float16_becomes_its_smallest_number() -> None:
    values = np.full((1, 32), 1e-9, np.float32)
    quantized = quantize_q8(values)
    assert quantized.scales is not None
    assert quantized.scales.coarse[0, 0] == np.float16(2**-24)
    assert not quantized.integers().any()


def test_a_subnormal_scale_is_rounded_up_where_the_largest_element_would_not_fit() -> None:
    largest = np.float32(1.4 * 127 * 2**-24)
    quantized = quantize_q8(np.full((1, 32), largest, np.float32))
    assert quantized.scales is not None
    assert quantized.scales.coarse[0, 0] == np.float16(2 * 2**-24)
    assert quantized.integers()[0, 0] == round(1.4 * 127 / 2)


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(source: str, bad: float) -> None:
    values = random_weight(4, 64)
    values[2, 5] = bad
    with pytest.raises(ArithmeticError, match="infinite or not a number"):
        quantize_q8(from_float32(values, source), source)


def test_values_beyond_the_largest_scale_are_refused() -> None:
    assert quantize_q8(np.full((1, 32), 65504 * 127, np.float32)).integers()[0, 0] == 127
    with pytest.raises(ArithmeticError, match="too large for q8"):
        quantize_q8(np.full((1, 32), 1e7, np.float32))


def test_a_weight_without_rows_is_quantised_to_nothing() -> None:
    assert quantize_q8(np.empty((0, 64), np.float32)).data.shape == (0, 64)
