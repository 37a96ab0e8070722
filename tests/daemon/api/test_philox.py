"""Philox against the known answers published with Random123."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.philox import philox4x32, uniform, uniforms
from llmd.api.random import Purpose

F = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((F, F, F, F), (F, F), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], words: tuple[int, int, int, int]
) -> None:
    assert philox4x32(counter, key) == words


def test_uniform_uses_both_words_of_the_seed() -> None:
    words = philox4x32((7, 2, 0, 0), (5, 9))
    assert uniform((9 << 32) | 5, 7, 2, Purpose.SAMPLE) == (words[0] + 0.5) * 2.0**-32


def test_uniform_never_reaches_the_ends() -> None:
    values = [uniform(seed, 0, 0, Purpose.SAMPLE) for seed in range(2000)]
    assert min(values) > 0
    assert max(values) < 1


@pytest.mark.parametrize("count", [1, 11, 12, 200])
def test_many_numbers_are_the_same_bits_as_one_by_one(count: int) -> None:
    rng = np.random.default_rng(count)
    seeds, positions, choices = (
        rng.integers(0, high, count, np.uint64, endpoint=True) for high in (2**64 - 1, 2**31, 15)
    )
    numbers = uniforms(seeds, positions, choices, Purpose.XTC)
    places = zip(seeds.tolist(), positions.tolist(), choices.tolist(), strict=True)
    assert numbers.tolist() == [uniform(*place, Purpose.XTC) for place in places]
