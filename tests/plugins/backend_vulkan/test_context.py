"""Places and constants of dispatches."""

from __future__ import annotations

import struct

from llmd_backend_vulkan.context import float_word, stride_of


def test_rows_begin_at_multiples_of_four_words() -> None:
    assert [stride_of(width) for width in (0, 1, 4, 5, 131)] == [0, 4, 4, 8, 132]


def test_numbers_are_passed_as_their_bits() -> None:
    assert float_word(1.0) == 0x3F800000
    assert (
        struct.unpack("<f", struct.pack("<I", float_word(0.1)))[0]
        == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    )
