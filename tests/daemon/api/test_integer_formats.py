from __future__ import annotations

import pytest

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, IntegerFormat


def test_the_table_holds_our_formats_and_those_of_gguf() -> None:
    own = [f"q8{size}" for size in ("", "_g32", "_g128", "_row", "_wide")]
    own += [f"q{bits}" for bits in (4, 3, 2)]
    own += [f"q{bits}_g{size}{sym}" for bits in (4, 3, 2) for size in (32, 64, 128) for sym in ("", "_sym")]
    assert sorted(OWN_FORMATS) == sorted(own)
    gguf = "q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4".split()
    assert set(INTEGER_FORMATS) == {*own, *gguf}
    assert all(form.name == name for name, form in INTEGER_FORMATS.items())


@pytest.mark.parametrize("form", INTEGER_FORMATS.values(), ids=str)
def test_a_format_is_one_that_kernels_can_know(form: IntegerFormat) -> None:
    assert form.bits in {2, 3, 4, 5, 6, 8}
    assert form.group_size in {0, 16, 32, 64, 128, 256}
    assert form.coarse_size in {0, 256}
    assert bool(form.fine_bits) == bool(form.coarse_size)
    assert not (form.has_minimum and form.zero)
    assert not form.outliers or (form.outliers == 4 and form.group_size == 256 and form.bits == 8)
    assert not form.in_int8 or (form.has_minimum and form.coarse_size and form.bits <= 4)
    if form.book:
        assert len(form.book) == 1 << form.bits
        assert all(-128 <= value <= 127 for value in form.book)


@pytest.mark.parametrize(
    ("name", "row_len", "group", "activations"),
    [
        ("q4", 512, 32, 256),
        ("q4_g64", 192, 64, 64),
        ("q4_g64", 96, 32, 32),
        ("q4_g128", 320, 32, 32),
        ("q8_g32", 40, 32, 32),
        ("q8_row", 100, 100, 128),
        ("q8_wide", 320, 256, 256),
        ("q6_k", 512, 16, 256),
        ("q4_0", 64, 32, 32),
    ],
)
def test_rows_that_a_group_does_not_divide_have_groups_of_32(
    name: str, row_len: int, group: int, activations: int
) -> None:
    form = INTEGER_FORMATS[name]
    assert form.row_group_size(row_len) == group
    assert form.activation_group(row_len) == activations


@pytest.mark.parametrize(
    ("name", "row_len", "num_bytes"),
    [
        ("q8", 128, 128 + 2 * 2),
        ("q4_g64", 40, 20 + 2 * 4),
        ("q8_wide", 300, 300 + 2 * (2 + 2 * 4)),
        ("q3_g64_sym", 7, 3 + 2),
        ("q4", 256, 128 + 4 + 8 + 2),
        ("q2", 256, 64 + 16 + 16 + 2),
        ("q2_k", 256, 64 + 2 * (2 + 16)),
        ("q8_row", 100, 100 + 2),
        ("q4_k", 256, 128 + 2 * (2 + 8)),
        ("q6_k", 512, 384 + 2 * 2 + 32),
    ],
)
def test_the_bytes_of_a_row_are_its_codes_scales_and_minimums(
    name: str, row_len: int, num_bytes: int
) -> None:
    assert INTEGER_FORMATS[name].weight_bytes(row_len) == num_bytes
