"""Codes, scales and minimums are arranged in words; the tests of products decode them."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import (
    INTEGER_FORMATS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    GroupScales,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.matrices import MatrixForm, form_of, load_matrix, load_stack, moved, packed
from llmd_backend_vulkan.memory import Arena


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_codes_fill_words_from_the_lowest_bits_on(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (2, 64), np.uint8)
    words = packed(codes, bits).reshape(2, -1)
    per_word = 32 // bits
    for row, column in ((0, 0), (0, 1), (1, 40), (1, 63)):
        word = int(words[row, column // per_word])
        assert word >> bits * (column % per_word) & (1 << bits) - 1 == codes[row, column]


@pytest.mark.parametrize("name", [*INTEGER_FORMATS, *SCALED_FORMATS])
def test_a_format_is_stored_in_few_more_bits_than_in_files(arena: Arena, name: str) -> None:
    weight = Weight(TensorRef("m", (64, 4096)), name)
    matrix = load_matrix(arena, RandomSource().read(weight))
    (piece,) = matrix.pieces
    stored = 8 * 4 * piece.region.num_words / (64 * 4096)
    in_files = 8 * weight.num_bytes / (64 * 4096)
    assert in_files - 0.01 <= stored <= in_files + 0.6
    assert matrix.num_bytes == 4 * piece.region.num_words


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("f16", MatrixForm(16)),
        ("q8_row", MatrixForm(8, 1, 0, 128)),
        ("q4_g64", MatrixForm(4, 2, 64)),
        ("q4_k", MatrixForm(4, 5, 32)),
        ("q6_k", MatrixForm(6, 4, 16, 32, 1)),
        ("mxfp4", MatrixForm(4, 3, 32, book=INTEGER_FORMATS["mxfp4"].book)),
        ("q8_wide", MatrixForm(8, 1, 256, 128, has_outliers=True)),
        ("fp8", MatrixForm(8, 3, 128, is_e4m3=True)),
        ("nvfp4", MatrixForm(8, 3, 16, is_e4m3=True)),
    ],
)
def test_shaders_are_specialised_by_what_differs_between_formats(name: str, form: MatrixForm) -> None:
    assert form_of(RandomSource().read(Weight(TensorRef("m", (4, 512)), name))) == form


@pytest.mark.parametrize("width", [100, 300])
def test_a_row_with_one_scale_is_one_group_whatever_its_width(width: int) -> None:
    codes, scales = np.zeros((4, width), np.uint8), GroupScales(np.ones((4, 1), np.float32))
    data = WeightData("fp8", codes, scales, group_size=width)
    assert form_of(data) == MatrixForm(8, 3, 0, is_e4m3=True)


def test_shaders_know_what_codes_are() -> None:
    forms = MatrixForm(8), MatrixForm(4, book=tuple(range(16))), MatrixForm(8, is_e4m3=True)
    assert [form.constants[5] for form in forms] == [0, 1, 2]


def test_a_book_is_passed_as_four_words() -> None:
    form = MatrixForm(4, book=tuple(range(16)))
    assert form.constants == (4, 0, 0, 0, 0, 1, 0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C, 0)


@pytest.mark.parametrize("name", PLAIN_FORMATS)
def test_rows_of_plain_matrices_are_padded_to_sixteen_bytes(arena: Arena, name: str) -> None:
    matrix = load_matrix(arena, RandomSource().read(Weight(TensorRef("m", (3, 5)), name)))
    assert matrix.row_words == (8 if name == "f32" else 4)


def test_a_matrix_moves_with_all_its_arrays(arena: Arena) -> None:
    matrix = load_matrix(arena, RandomSource().read(Weight(TensorRef("m", (4, 512)), "q4_k")))
    (before,) = matrix.pieces
    target = arena.take(before.region.num_words)
    (after,) = moved(matrix, [target]).pieces
    assert after.region is target
    for name in ("low_at", "high_at", "scales_at", "coarse_at", "outliers_at"):
        assert getattr(after, name) - target.at == getattr(before, name) - before.region.at


@pytest.mark.parametrize(
    ("most_words", "pieces"), [(1 << 20, 1), (512 + 2 * 6 * 128, 3), (512 + 4 * 128, 10)]
)
def test_pieces_of_a_stack_have_whole_members_or_rows_of_one(
    monkeypatch: pytest.MonkeyPatch, arena: Arena, most_words: int, pieces: int
) -> None:
    members = [np.full((6, 256), number, np.float16) for number in range(5)]
    read: list[int] = []

    def member(number: int) -> WeightData:
        read.append(number)
        return WeightData("f16", members[number])

    most = arena.runtime.most_words
    monkeypatch.setattr(arena.runtime, "most_words", most_words)
    stack = load_stack(arena, 5, member)
    monkeypatch.setattr(arena.runtime, "most_words", most)
    assert read == [0, 1, 2, 3, 4]
    assert (stack.height, stack.width, len(stack.pieces)) == (6, 256, pieces)
    for piece in stack.pieces:
        found = arena.download(piece.region, 0, piece.num_members * piece.num_rows * 128).view(np.float16)
        numbers = range(piece.first_member, piece.first_member + piece.num_members)
        assert np.array_equal(found.reshape(-1, 256)[:, 0], np.repeat(numbers, piece.num_rows))
