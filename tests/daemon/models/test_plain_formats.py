from __future__ import annotations

import numpy as np
import pytest

from llmd.models.plain_formats import CHUNK_ELEMENTS, convert, from_float32, to_float32

NAN = float("nan")
INFINITY = float("inf")


def floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.0, 0xC000),
        (1 + 2**-8, 0x3F80),  # halfway: to even, down
        (1 + 3 * 2**-8, 0x3F82),  # halfway: to even, up
        (1 + 2**-8 + 2**-20, 0x3F81),
        (float(np.finfo(np.float32).max), 0x7F80),
        (-0.0, 0x8000),
        (INFINITY, 0x7F80),
        (2.0**-133, 0x0001),  # subnormal
    ],
)
def test_bf16_is_rounded_to_the_nearest_even(value: float, bits: int) -> None:
    assert from_float32(floats(value), "bf16").tolist() == [bits]


def test_nan_stays_nan_in_bf16_whatever_its_payload() -> None:
    payloads = np.array([0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(to_float32(from_float32(payloads, "bf16"), "bf16")).all()


def test_every_bf16_survives_a_round_trip() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = to_float32(bits, "bf16")
    finite = ~np.isnan(values)
    np.testing.assert_array_equal(from_float32(values, "bf16")[finite], bits[finite])


def test_every_finite_f16_survives_a_round_trip_through_f32() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    np.testing.assert_array_equal(convert(convert(values, "f16", "f32"), "f32", "f16"), values)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_the_same_format_costs_no_copy(name: str) -> None:
    data = np.zeros(3, np.uint16)
    assert convert(data, name, name) is data


@pytest.mark.parametrize(
    ("source", "target"), [("bf16", "f16"), ("f16", "bf16"), ("bf16", "f32"), ("f32", "bf16")]
)
def test_shape_and_values_are_kept_over_many_chunks(source: str, target: str) -> None:
    values = np.arange(3 * CHUNK_ELEMENTS // 2, dtype=np.float32).reshape(-1, 3) % 256
    converted = convert(from_float32(values, source), source, target)
    assert converted.shape == values.shape
    np.testing.assert_array_equal(to_float32(converted, target), values)


def test_a_value_outside_the_target_is_refused() -> None:
    with pytest.raises(ArithmeticError, match=r"the value 1000000\.0 is outside the range of f16"):
        convert(floats(1.0, 1e6), "f32", "f16")


@pytest.mark.parametrize("values", [(0.0, -1e6), (NAN, 1e6), (1e6, NAN), (INFINITY, -1e6)])
def test_nothing_hides_a_value_outside_the_target(values: tuple[float, ...]) -> None:
    with pytest.raises(ArithmeticError, match=r"the value -?1000000\.0 is outside the range of f16"):
        convert(floats(*values), "f32", "f16")


@pytest.mark.parametrize(("target", "value"), [("f16", 65519.0), ("bf16", 3.3961e38)])
def test_what_rounds_to_the_largest_of_the_target_is_within_it(target: str, value: float) -> None:
    largest = to_float32(convert(floats(value), "f32", target), target)
    assert np.isfinite(largest).all()
    assert largest[0] < value


def test_infinities_that_were_stored_are_kept() -> None:
    assert convert(floats(INFINITY), "f32", "f16").tolist() == [INFINITY]


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (), (3,)])
def test_any_shape_is_converted(shape: tuple[int, ...]) -> None:
    assert convert(np.ones(shape, np.float32), "f32", "bf16").shape == shape
