from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, Format, WeightData
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import QUANTIZER_ELEMENTS, quantize
from llmd.models.plain_formats import from_float32, to_float32

Float32 = NDArray[np.float32]
EIGHT_BITS = tuple(
    name for name in OWN_FORMATS if INTEGER_FORMATS[name].bits == 8 and not INTEGER_FORMATS[name].outliers
)
FEW_BITS = tuple(name for name in OWN_FORMATS if INTEGER_FORMATS[name].bits < 8)
ANY_ROW = tuple(name for name in OWN_FORMATS if not INTEGER_FORMATS[name].coarse_size)


def random_weight(rows: int, row_len: int, scale: float = 0.02) -> Float32:
    return (np.random.default_rng(1).standard_normal((rows, row_len)) * scale).astype(np.float32)


def heavy_tailed() -> Float32:
    """Student's t with 5 degrees of freedom; all weights of some inputs are six times as large."""
    draw = np.random.default_rng(2)
    weight = draw.standard_t(5, (128, 1024)) * 0.02
    weight[:, draw.choice(1024, 5, replace=False)] *= 6
    return weight.astype(np.float32)


def nmse(found: Float32, weight: Float32) -> float:
    wide = weight.astype(np.float64)
    return float(np.sum((found - wide) ** 2) / np.sum(wide**2))


def loss(name: Format, weight: Float32) -> float:
    return nmse(dequantize(quantize(weight, name)), weight)


@pytest.mark.parametrize("name", EIGHT_BITS)
@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("row_len", [64, 96, 40, 7])
def test_eight_bits_follow_the_definition_element_by_element(name: str, source: str, row_len: int) -> None:
    data = from_float32(random_weight(5, row_len), source)
    values = to_float32(data, source)
    quantized = quantize(data, name, source)
    assert quantized.scales is not None
    assert quantized.group_size == INTEGER_FORMATS[name].row_group_size(row_len)
    assert quantized.scales.coarse.shape == (5, -(-row_len // quantized.group_size))
    for row in range(5):
        for group in range(quantized.scales.coarse.shape[1]):
            part = slice(group * quantized.group_size, (group + 1) * quantized.group_size)
            scale = np.float16(np.abs(values[row, part]).max() / np.float32(127))
            assert quantized.scales.coarse[row, group] == scale
            expected = [round(float(w / np.float32(scale))) for w in values[row, part]]
            assert quantized.integers()[row, part].tolist() == expected


@pytest.mark.parametrize("scale", [1e4, 1.0, 0.02, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_no_element_of_eight_bits_is_off_by_more_than_half_a_step(scale: float) -> None:
    values = random_weight(64, 192, scale)
    quantized = quantize(values, "q8")
    assert quantized.scales is not None
    steps = np.repeat(quantized.scales.values(), 64, axis=1)
    assert (np.abs(dequantize(quantized) - values) <= steps * 0.501).all()
    assert np.abs(quantized.integers().astype(int)).max() <= 127


@pytest.mark.parametrize("scale", [1e4, 1.0, 0.02, 1e-3, 1e-5])
def test_outliers_leave_no_element_off_by_more_than_half_a_step(scale: float) -> None:
    values = random_weight(64, 700, scale)
    values[:, ::100] *= 20
    quantized = quantize(values, "q8_wide")
    assert quantized.scales is not None
    steps = np.repeat(quantized.scales.values(), 256, axis=1)[:, :700]
    assert (np.abs(dequantize(quantized) - values) <= steps * 0.501).all()
    # 3 of the last 188 weights are outliers, as many as in other groups: the largest of the others is near
    # 127.
    assert np.abs(quantized.integers()).max() > 400


def test_outliers_lose_less_than_groups_of_gguf_where_tails_are_heavy_and_as_much_elsewhere() -> None:
    heavy, gaussian = heavy_tailed(), random_weight(128, 1024)
    assert loss("q8_wide", heavy) < 0.7 * loss("q8_g32", heavy)
    assert 0.97 < loss("q8_wide", gaussian) / loss("q8_g32", gaussian) < 1.05
    assert INTEGER_FORMATS["q8_wide"].weight_bytes(1024) < INTEGER_FORMATS["q8_g32"].weight_bytes(1024)


@pytest.mark.parametrize("name", FEW_BITS)
def test_each_weight_has_the_code_that_comes_nearest(name: str) -> None:
    weight = random_weight(8, 512)
    quantized = quantize(weight, name)
    form = INTEGER_FORMATS[name]
    assert quantized.scales is not None
    steps = np.repeat(np.abs(quantized.scales.values()), quantized.group_size, axis=1)
    codes = quantized.data.astype(int)
    inside = (codes > 0) & (codes < (1 << form.bits) - 1)
    off = np.abs(dequantize(quantized) - weight)
    assert (off <= steps * 0.501)[inside].all()
    assert codes.max() == (1 << form.bits) - 1


@pytest.mark.parametrize("make", [random_weight, heavy_tailed])
def test_four_bits_lose_less_than_those_of_gguf_in_as_many_bits(make: object) -> None:
    weight = heavy_tailed() if make is heavy_tailed else random_weight(128, 1024)
    q4_0, q4_1 = (
        nmse(quants.dequantize(quants.quantize(weight, kind), kind), weight)
        for kind in (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q4_1)
    )
    assert loss("q4_g32_sym", weight) < 0.95 * q4_0
    assert loss("q4_g32", weight) < 0.85 * q4_1
    assert loss("q4", weight) < 0.7 * q4_0


@pytest.mark.parametrize(
    ("name", "gauss", "heavy"),
    [
        ("q8", 3.7e-5, 1.1e-4),
        ("q8_wide", 3.1e-5, 4.0e-5),
        ("q4", 5.2e-3, 8.4e-3),
        ("q3", 2.2e-2, 3.3e-2),
        ("q2", 7.0e-2, 8.0e-2),
        ("q4_g64", 7.0e-3, 1.3e-2),
        ("q4_g64_sym", 8.5e-3, 2.2e-2),
    ],
)
def test_formats_lose_what_the_documentation_says(name: str, gauss: float, heavy: float) -> None:
    assert loss(name, random_weight(128, 1024)) < gauss
    assert loss(name, heavy_tailed()) < heavy


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_a_row_is_quantised_alike_in_any_company(name: str) -> None:
    values = random_weight(600, 256)
    whole = quantize(values, name).rows(slice(123, 124))
    alone = quantize(values[123:124], name)
    for one, other in zip(whole.arrays, alone.arrays, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ANY_ROW)
def test_a_short_last_group_is_quantised_for_itself(name: str) -> None:
    values = random_weight(6, 70)
    values[:, 64:] *= 50
    assert loss(name, values[:, 64:]) <= loss(name, values) + 1e-3 or name == "q8_row"
    quantized = quantize(values, name)
    assert quantized.data.shape == (6, 70)
    if name != "q8_row":
        np.testing.assert_array_equal(quantized.data[:, 64:], quantize(values[:, 64:], name).data)


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_groups_of_zeros_and_of_tiny_numbers_stay_what_they_are_or_become_zero(name: str) -> None:
    values = np.zeros((4, 256), np.float32)
    values[1, 3] = -0.0
    values[2] = 1e-9
    values[3] = random_weight(1, 256, 1e-40)
    numbers = dequantize(quantize(values, name))
    assert not numbers[:2].any()
    assert np.abs(numbers[2:]).max() < 1e-7


@pytest.mark.parametrize("name", FEW_BITS)
@pytest.mark.parametrize("constant", [0.5, -0.5])
def test_a_group_of_one_number_keeps_it(name: str, constant: float) -> None:
    numbers = dequantize(quantize(np.full((2, 256), constant, np.float32), name))
    np.testing.assert_allclose(numbers, constant, rtol=0.01)


def test_a_scale_too_small_for_float16_becomes_its_smallest_number() -> None:
    quantized = quantize(np.full((1, 32), 1e-9, np.float32), "q8")
    assert quantized.scales is not None
    assert quantized.scales.coarse[0, 0] == np.float16(2**-24)
    assert not quantized.integers().any()


def test_a_subnormal_scale_is_rounded_up_where_the_largest_element_would_not_fit() -> None:
    largest = np.float32(1.4 * 127 * 2**-24)
    quantized = quantize(np.full((1, 32), largest), "q8")
    assert quantized.scales is not None
    assert quantized.scales.coarse[0, 0] == np.float16(2 * 2**-24)
    assert quantized.integers()[0, 0] == round(1.4 * 127 / 2)


@pytest.mark.parametrize("name", ["q8", "q8_row", "q4", "q3_g32", "q2_g128_sym"])
@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(name: str, source: str, bad: float) -> None:
    values = random_weight(4, 256)
    values[2, 5] = bad
    with pytest.raises(ArithmeticError, match="infinite or not a number"):
        quantize(from_float32(values, source), name, source)


def test_values_up_to_the_largest_scale_fit() -> None:
    assert quantize(np.full((1, 32), 65504 * 127, np.float32), "q8").integers()[0, 0] == 127
    assert dequantize(quantize(np.full((1, 32), 65504, np.float32), "q4_g32"))[0, 0] == 65504


@pytest.mark.parametrize("name", OWN_FORMATS)
@pytest.mark.parametrize("large", [1e9, 3e38])
def test_values_beyond_the_largest_scale_are_refused(name: str, large: float) -> None:
    values = random_weight(1, 256, 1.0)
    values[0, ::7] = large
    values[0, 1::7] = -large
    with pytest.raises(ArithmeticError, match="too large"):
        quantize(values, name)


@pytest.mark.parametrize("name", ["q4", "q3", "q2"])
def test_two_levels_need_whole_blocks(name: str) -> None:
    with pytest.raises(ValueError, match="rows of 320 weights are not whole blocks of 256"):
        quantize(random_weight(2, 320), name)


@pytest.mark.parametrize("name", OWN_FORMATS)
@pytest.mark.parametrize("num_rows", [1, 3])
def test_narrow_rows_are_quantised_to_contiguous_arrays(name: str, num_rows: int) -> None:
    block = INTEGER_FORMATS[name].coarse_size or INTEGER_FORMATS[name].group_size or 128
    others = (1, 2, block - 1, block + 1) if name in ANY_ROW else ()
    for row_len in (block, 3 * block, *others):
        weight = random_weight(num_rows, row_len)
        quantized = quantize(weight, name)
        assert [array.strides for array in quantized.arrays if not array.flags.c_contiguous] == []
        assert nmse(dequantize(quantized), weight) < 0.2


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_a_weight_without_rows_is_quantised_to_nothing(name: str) -> None:
    assert quantize(np.empty((0, 256), np.float32), name).data.shape == (0, 256)


class HalfWilling:
    """A quantizer that writes zeros for rows that begin with 0, and garbage for others."""

    def quantize(self, weights: NDArray[np.generic], source: Format, into: WeightData) -> bool:
        done = not weights[0, 0]
        for array in into.arrays:
            array[:] = 0 if done else 1
        return done


def test_what_a_quantiser_leaves_is_quantised_by_numpy() -> None:
    values = random_weight(2, QUANTIZER_ELEMENTS)
    values[0, 0] = 0
    quantized = quantize(values, "q4", quantizer=HalfWilling())
    assert not quantized.data[0].any()
    for one, other in zip(quantized.arrays, quantize(values, "q4").arrays, strict=True):
        np.testing.assert_array_equal(one[1], other[1])
