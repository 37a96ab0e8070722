from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

from llmd.models.formats.fp8 import from_e4m3
from llmd.models.formats.nvfp4 import BLOCK_BYTES, GROUP, of_blocks, of_pairs, scales_of

NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]
"""Of the codes, as the OCP Microscaling Formats specification has them."""
DRAW = np.random.default_rng(5)


def test_a_byte_holds_two_neighbours_the_first_in_its_low_half() -> None:
    packed = np.arange(256, dtype=np.uint8).reshape(2, 128)
    found = from_e4m3(of_pairs(packed)).reshape(-1, 2)
    assert found.tolist() == [[NUMBERS[byte & 15], NUMBERS[byte >> 4]] for byte in range(256)]


def test_blocks_of_gguf_files_mean_what_the_gguf_package_reads() -> None:
    blocks = DRAW.integers(0, 256, (37, 5 * BLOCK_BYTES), dtype=np.uint8)
    scale_bytes = blocks.reshape(37, 5, BLOCK_BYTES)[..., : BLOCK_BYTES - 32]
    scale_bytes &= 0x7F
    scale_bytes[scale_bytes == 0x7F] = 0x7E
    numbers, scales = of_blocks(blocks)
    found = from_e4m3(numbers) * np.repeat(from_e4m3(scales), GROUP, axis=1)
    assert np.array_equal(found, quants.dequantize(blocks, GGMLQuantizationType.NVFP4))


def test_scales_are_multiplied_or_divided_once() -> None:
    codes = DRAW.integers(0, 127, (4, 3), dtype=np.uint8)
    of_rows = DRAW.uniform(0.01, 3, (4, 1)).astype(np.float32)
    assert np.array_equal(scales_of(codes, of_rows, divides=False), from_e4m3(codes) * of_rows)
    assert np.array_equal(scales_of(codes, of_rows, divides=True), from_e4m3(codes) / of_rows)


@pytest.mark.parametrize(
    ("code", "of_row", "divides"),
    [(0x7F, 1.0, False), (0x40, np.nan, False), (0x40, 0.0, True), (0x7E, 3e38, False)],
)
def test_a_scale_that_is_no_finite_number_is_an_error(code: int, of_row: float, *, divides: bool) -> None:
    with pytest.raises(ArithmeticError, match="infinite or not a number"):
        scales_of(np.full((1, 1), code, np.uint8), np.full((1, 1), of_row, np.float32), divides=divides)
