"""What kernels are compiled for, and the bytes of a matrix on the card."""

from __future__ import annotations

import pytest

from llmd.api import INTEGER_FORMATS, PLAIN_FORMATS, SCALED_FORMATS, Format, TensorRef, Weight
from llmd.models.weight_formats import quantized_format
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS, MatrixForm, MatrixSize

OUT, WIDTH = 40, 100
"""Three tiles and two chunks, the last of which are padded."""


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("f32", MatrixForm(16)),
        ("bf16", MatrixForm(16)),
        ("q8", MatrixForm(8, 64, minimum=False, zero=128)),
        ("q8_row", MatrixForm(8, 0, minimum=False, zero=128)),
        ("q4_g32", MatrixForm(4, 32, minimum=True, zero=0)),
        ("q4_0", MatrixForm(4, 32, minimum=False, zero=8)),
        ("q5_1", MatrixForm(5, 32, minimum=True, zero=0)),
        ("q6_k", MatrixForm(6, 16, minimum=False, zero=32, scale_bits=8)),
        ("q3_k", MatrixForm(3, 16, minimum=False, zero=4, scale_bits=8)),
        ("q2_k", MatrixForm(2, 16, minimum=True, scale_bits=4, minimum_bits=4)),
        ("q4_k", MatrixForm(4, 32, minimum=True, scale_bits=6, minimum_bits=6)),
        ("q4", MatrixForm(4, 32, minimum=True, scale_bits=4, minimum_bits=8, negated=True)),
        ("q2", MatrixForm(2, 16, minimum=True, scale_bits=8, minimum_bits=8, negated=True)),
        ("iq4_nl", MatrixForm(4, 32, book=1)),
        ("iq4_xs", MatrixForm(4, 32, book=1, scale_bits=8)),
        ("mxfp4", MatrixForm(4, 32, book=2)),
        ("fp8", MatrixForm(8, 128, fp8=True)),
        ("nvfp4", MatrixForm(8, 16, fp8=True)),
    ],
)
def test_formats_have_forms(name: Format, form: MatrixForm) -> None:
    assert MatrixForm.of(name, 256) == form


def test_chunks_of_int8_weights_have_one_scale() -> None:
    several = {
        name for name in ("q4_k", "q6_k", "q4_0", "q8_0") if MatrixForm.of(name, 256).has_several_scales
    }
    assert several == {"q4_k", "q6_k", "q4_0", "q8_0"}
    for name in ("f16", "q8", "q8_row", "q4_g128", "q4", "q2"):
        assert not MatrixForm.of(name, 256).has_several_scales


@pytest.mark.parametrize("width", [96, 100, 512])
def test_rows_in_int8_have_the_scales_of_their_format(width: int) -> None:
    for name in CLAIMED_FORMATS:
        expected = INTEGER_FORMATS[name].activation_group(width) if name in INTEGER_FORMATS else 0
        assert MatrixForm.of(name, width).activation_group == expected


def test_all_formats_without_outliers_are_claimed() -> None:
    assert set(CLAIMED_FORMATS) == {*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS} - {"q8_wide"}
    assert quantized_format("q8_wide", CLAIMED_FORMATS, 256) == "q8"


@pytest.mark.parametrize(
    ("bits", "low", "high"), [(16, 16, 0), (8, 8, 0), (6, 4, 2), (5, 4, 1), (4, 4, 0), (3, 2, 1), (2, 2, 0)]
)
def test_odd_bits_are_two_arrays(bits: int, low: int, high: int) -> None:
    form = MatrixForm(bits)
    assert (form.low_bits, form.high_bits) == (low, high)


def test_tiles_chunks_and_groups_are_rounded_up() -> None:
    size = MatrixSize(MatrixForm(3, 32, minimum=True), OUT, WIDTH)
    assert (size.tiles, size.chunks, size.groups) == (3, 2, 4)
    assert size.plane_bytes(2) == 48 * 128 // 4
    assert size.scale_bytes == 48 * 4 * 2
    assert size.num_bytes == 48 * 128 * 3 // 8 + 2 * 48 * 4 * 2


@pytest.mark.parametrize("name", [name for name, form in INTEGER_FORMATS.items() if not form.outliers])
def test_a_matrix_takes_the_bytes_of_its_format(name: Format) -> None:
    form = INTEGER_FORMATS[name]
    size = MatrixSize(MatrixForm.of(name, 1024), 64, 1024)
    assert size.num_bytes <= 64 * form.weight_bytes(1024)


@pytest.mark.parametrize("name", SCALED_FORMATS)
def test_numbers_of_8_bits_take_a_byte_and_float16_scales(name: Format) -> None:
    size = MatrixSize(MatrixForm.of(name, 1024), 64, 1024)
    assert size.num_bytes == 64 * (1024 + 2 * 1024 // size.form.group + 4)
    assert size.num_bytes <= Weight(TensorRef("w", (64, 1024)), name).num_bytes
