"""Decoded blocks match those of the ``gguf`` package, the reference for the file format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, block_bytes, decode

QUANTISED_BY_GGUF = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4")
ROW_LEN = 768
Bytes = NDArray[np.uint8]


def theirs(fmt: str, blocks: Bytes) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        found: NDArray[np.float32] = quants.dequantize(blocks, GGMLQuantizationType[fmt.upper()])
    return found


def block_len(fmt: str) -> int:
    """Return the length of the shortest row."""
    return INTEGER_FORMATS[fmt].coarse_size or INTEGER_FORMATS[fmt].group_size


def quantised(fmt: str, row_len: int) -> Bytes:
    values = np.random.default_rng(4).standard_t(5, (37, row_len)).astype(np.float32) * np.float32(0.02)
    blocks: Bytes = quants.quantize(values, GGMLQuantizationType[fmt.upper()])
    return blocks


def random_bytes(fmt: str, row_len: int = ROW_LEN) -> Bytes:
    draw = np.random.default_rng(7)
    return draw.integers(0, 256, (500, block_bytes(fmt, row_len)), dtype=np.uint8)


@pytest.mark.parametrize(
    ("fmt", "make"),
    [
        *((fmt, random_bytes) for fmt in BLOCK_FORMATS),
        *((fmt, quantised) for fmt in QUANTISED_BY_GGUF),
    ],
)
@pytest.mark.parametrize("blocks_in_row", [1, 2, None])
def test_blocks_mean_the_same_numbers_to_the_last_bit(
    fmt: str, make: Callable[[str, int], Bytes], blocks_in_row: int | None
) -> None:
    row_len = blocks_in_row * block_len(fmt) if blocks_in_row else ROW_LEN
    blocks = make(fmt, row_len)
    expected = theirs(fmt, blocks)
    found = dequantize(decode(fmt, blocks, row_len))
    assert found.shape == expected.shape
    same = (found.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(found) & np.isnan(expected))
    assert same.all()
    assert np.isfinite(expected).mean() > 0.9


@pytest.mark.parametrize("fmt", BLOCK_FORMATS)
def test_decoded_weights_are_as_the_table_of_formats_says(fmt: str) -> None:
    form = INTEGER_FORMATS[fmt]
    weight = decode(fmt, random_bytes(fmt), ROW_LEN)
    assert weight.format == fmt
    assert weight.group_size == form.group_size
    assert weight.data.dtype == np.uint8
    assert weight.data.max() == (1 << form.bits) - 1
    assert weight.scales is not None
    levels = [weight.scales] if weight.minimums is None else [weight.scales, weight.minimums]
    assert (weight.minimums is not None) == form.has_minimum
    for scales in levels:
        assert scales.coarse.dtype == (np.float32 if fmt == "mxfp4" else np.float16)
        assert scales.coarse.shape == (500, ROW_LEN // (form.coarse_size or form.group_size))
        assert (scales.fine is not None) == bool(form.coarse_size)
        if scales.fine is not None:
            assert scales.fine.shape == (500, ROW_LEN // form.group_size)
            assert scales.fine.dtype in {np.dtype(np.int8), np.dtype(np.uint8)}


@pytest.mark.parametrize("fmt", BLOCK_FORMATS)
@pytest.mark.parametrize("blocks_in_row", [1, 2, 3])
@pytest.mark.parametrize("num_rows", [1, 500])
def test_decoded_arrays_are_contiguous(fmt: str, blocks_in_row: int, num_rows: int) -> None:
    row_len = blocks_in_row * block_len(fmt)
    weight = decode(fmt, random_bytes(fmt, row_len)[:num_rows], row_len)
    assert [array.strides for array in weight.arrays if not array.flags.c_contiguous] == []


@pytest.mark.parametrize("fmt", BLOCK_FORMATS)
def test_a_row_of_a_file_has_the_bytes_that_the_package_counts(fmt: str) -> None:
    shape = quants.quant_shape_to_byte_shape((ROW_LEN,), GGMLQuantizationType[fmt.upper()])
    assert block_bytes(fmt, ROW_LEN) == shape[0]


def test_rows_of_broken_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of 288 weights are not whole blocks of 256"):
        block_bytes("q4_k", 288)
    assert block_bytes("q4_0", 288) == 9 * 18


def test_no_rows_are_decoded_to_no_rows() -> None:
    empty = decode("q5_k", np.zeros((0, block_bytes("q5_k", 512)), np.uint8), 512)
    assert empty.data.shape == (0, 512)
    assert dequantize(empty).shape == (0, 512)
