from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KV_DTYPES, KVDtype
from llmd.api.kv import KV_BOOK
from llmd.builtin.reference.kv_formats import KV_FORMATS, Float32, Float64
from llmd.builtin.reference.rotation import rotate

# Rounding bounds: half a unit in the last place, or half a step of the largest element of a group.
RELATIVE = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8, "int8": 0.5 / 127 * 1.001}


def kept(x: Float32, dtype: KVDtype, first: int = 0) -> Float64:
    """Encode and decode ``[tokens, …, head_dim]`` at positions from ``first`` on."""
    heads, positions = x.reshape(len(x), -1, x.shape[-1]), np.arange(first, first + len(x))
    arrays = KV_FORMATS[dtype].encode(heads, positions)
    return KV_FORMATS[dtype].decode(arrays, x.shape[-1], positions).reshape(x.shape)


def random(*shape: int) -> Float32:
    return np.random.default_rng(1).standard_normal(shape, np.float32)


@pytest.mark.parametrize("dtype", KV_DTYPES)
@pytest.mark.parametrize("head_dim", [1, 12, 32, 40, 128])
def test_what_is_kept_is_the_nearest_that_the_dtype_has(dtype: KVDtype, head_dim: int) -> None:
    x = random(5, 2, head_dim)
    error = np.abs(kept(x, dtype) - x)
    if dtype == "int4":
        rotated = rotate(x)
        for g in (slice(first, first + 32) for first in range(0, head_dim, 32)):
            widest = np.abs(rotated[..., g]).max(-1, keepdims=True)
            off = np.abs(rotate(kept(x, dtype)) - rotated)[..., g]
            # The widest step is 14 of 127 units, and a scale is at most three of its own steps too wide.
            # Elements that move to make a sum of lowest bits even are off by up to a whole step.
            assert (off <= widest * 14 / 127 * 1.5).all()
    elif dtype == "int8":
        groups = [slice(first, first + 32) for first in range(0, head_dim, 32)]
        assert all(
            (error[..., g] <= RELATIVE[dtype] * np.abs(x[..., g]).max(-1, keepdims=True)).all()
            for g in groups
        )
    else:
        assert (error <= RELATIVE[dtype] * np.abs(x)).all()


def test_bfloat16_rounds_ties_to_even_and_keeps_what_is_no_number() -> None:
    ulp = 2.0**-7
    x = np.array([1 + 0.5 * ulp, 1 + 1.5 * ulp, -1 - 0.6 * ulp, np.inf, 3.4e38], np.float32)
    assert kept(x[None], "bf16")[0].tolist() == [1.0, 1 + 2 * ulp, -1 - ulp, np.inf, np.inf]
    nan = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(kept(nan[None], "bf16")).all()


def test_int8_groups_do_not_disturb_each_other() -> None:
    x = random(1, 64)
    x[0, 5] = 1000.0
    assert np.abs(kept(x, "int8") - x)[0, 32:].max() < 0.02
    assert np.abs(kept(x, "int8") - x)[0, :32].max() > 0.5


def test_int8_keeps_zeros_and_the_largest_of_a_group() -> None:
    x = np.zeros((2, 40), np.float32)
    x[1, 33] = -127.0
    assert np.array_equal(kept(x, "int8"), x)
    tiny = np.full((1, 32), 1e-9, np.float32)
    assert not kept(tiny, "int8").any(), "a scale that half precision has no number for"


def test_int4_loses_little_where_a_few_elements_hold_much_of_a_head() -> None:
    x = random(200, 64)
    even = np.mean((kept(x, "int4") - x) ** 2) / np.mean(x**2)
    x[:, [5, 40]] *= 10
    uneven = np.mean((kept(x, "int4") - x) ** 2) / np.mean(x**2)
    assert 0.0018 < even < 0.0022
    assert uneven < 0.0022, "without rotation the groups of these two would have steps ten times as wide"


def test_int4_errors_of_equal_heads_at_neighbouring_positions_have_little_in_common() -> None:
    x = np.repeat(random(100, 64), 2, axis=0)
    even, odd = (kept(x, "int4") - x)[0::2], (kept(x, "int4") - x)[1::2]
    assert abs(np.corrcoef(even.ravel(), odd.ravel())[0, 1]) < 0.2


def test_int4_codes_have_even_sums_of_lowest_bits_that_are_not_all_kept() -> None:
    pairs, bits, scales = KV_FORMATS["int4"].encode(random(5, 1, 64), np.arange(5))
    assert [array.shape for array in (pairs, bits, scales)] == [(5, 1, 32), (5, 1, 2, 3), (5, 1, 2)]


def test_int4_levels_are_a_cubic_of_their_codes() -> None:
    v = (np.arange(32) - 15.25) / 15.75
    assert np.rint(127 * (0.6 * v + 0.4 * v**3)).astype(int).tolist() == list(KV_BOOK)


def test_int4_keeps_zeros() -> None:
    assert not kept(np.zeros((2, 40), np.float32), "int4").any()
    tiny = np.full((1, 32), 1e-9, np.float32)
    assert not kept(tiny, "int4").any(), "a scale that 8 bits have no number for"


def test_int4_keeps_what_is_not_finite_to_its_token() -> None:
    x = random(3, 64)
    x[1, 40] = np.nan
    clean = random(3, 64)
    assert np.array_equal(kept(x, "int4")[[0, 2]], kept(clean, "int4")[[0, 2]])


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_each_token_and_head_is_rounded_alone(dtype: KVDtype) -> None:
    x = random(4, 3, 40)
    whole = kept(x, dtype)
    for token in range(4):
        for head in range(3):
            assert np.array_equal(kept(x[token, head][None], dtype, token)[0], whole[token, head])
