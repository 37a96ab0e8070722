from __future__ import annotations

import numpy as np

from llmd.models.formats import gguf_scales


def test_scales_of_6_bits_take_their_upper_bits_from_the_first_eight_bytes() -> None:
    packed = np.array([[0b01_000001, 2, 3, 4, 0b11_000101, 6, 7, 8, 0x21, 0, 0, 0x43]], np.uint8)
    scales, minimums = gguf_scales.with_minimums_of_6_bits(packed)
    assert scales.tolist() == [[1, 2, 3, 4, 0b01_0001, 0, 0, 3]]
    assert minimums.tolist() == [[5, 6, 7, 8, 0b11_0010, 0, 0, 4]]


def test_scales_of_4_bits_lie_below_their_minimums() -> None:
    scales, minimums = gguf_scales.with_minimums_of_4_bits(np.array([[0x21, 0xF0]], np.uint8))
    assert (scales.tolist(), minimums.tolist()) == ([[1, 0]], [[2, 15]])


def test_signed_scales_are_32_too_large() -> None:
    packed = np.zeros((1, 12), np.uint8)
    packed[0, 1], packed[0, 9] = 0xF2, 0b11_00_10_01
    scales = gguf_scales.signed_of_6_bits(packed)
    assert scales.dtype == np.int8
    assert scales.tolist()[0] == [
        -32,
        0b01_0010 - 32,
        *[-32] * 3,
        0,
        *[-32] * 3,
        -17,
        *[-32] * 3,
        16,
        -32,
        -32,
    ]


def test_split_scales_join_their_bits() -> None:
    low, high = np.array([[0x21, 0, 0, 0xF0]], np.uint8), np.array([[0b01, 0b10_00_00_00]], np.uint8)
    scales = gguf_scales.signed_of_split_bits(low, high)
    assert scales.tolist() == [[0b01_0001 - 32, 2 - 32, *[-32] * 5, 0b10_1111 - 32]]


def test_powers_of_two_reach_from_subnormal_numbers_to_the_largest() -> None:
    found = gguf_scales.powers_of_two(np.array([0, 1, 128, 255], np.uint8))
    assert found.dtype == np.float32
    assert found.tolist() == [2.0**-128, 2.0**-127, 1.0, 2.0**127]
