"""Our quantised blocks match those of the ``gguf`` package, the reference for the file format."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from numpy.typing import NDArray

from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.gguf_blocks import decode
from llmd.models.formats.gguf_quantization import QUANTIZERS, quantize_to_blocks
from llmd.models.plain_formats import from_float32, to_float32

ROW_LEN = 1024


def weights() -> NDArray[np.float32]:
    """More rows than one chunk; blocks of zero, tiny, large and equal weights, and ties between codes."""
    drawn = np.random.default_rng(4).standard_t(5, (131, ROW_LEN)).astype(np.float32)
    drawn[0, :32], drawn[1], drawn[2], drawn[3] = 0, 1e-9, drawn[2] * 1e3, -0.25
    drawn[4, :4] = (127, 0.5, -0.5, 2.5)
    return drawn


@pytest.mark.parametrize("fmt", QUANTIZERS)
@pytest.mark.parametrize("stored", ["f32", "f16", "bf16"])
def test_blocks_are_those_of_ggml_to_the_last_bit(fmt: str, stored: str) -> None:
    given = from_float32(weights(), stored)
    expected = quants.quantize(to_float32(given, stored), GGMLQuantizationType[fmt.upper()])
    assert np.array_equal(quantize_to_blocks(given, stored, fmt), expected)


@pytest.mark.parametrize(("fmt", "largest"), [("q8_0", 1e-4), ("q5_0", 3e-3), ("q4_1", 0.01)])
def test_blocks_stand_for_nearly_the_weights_that_they_are_made_of(fmt: str, largest: float) -> None:
    drawn = np.random.default_rng(2).standard_normal((64, ROW_LEN), np.float32)
    found = dequantize(decode(fmt, quantize_to_blocks(drawn, "f32", fmt), ROW_LEN))
    assert 0 < np.mean((found - drawn) ** 2) < largest


@pytest.mark.parametrize("fmt", QUANTIZERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -3e38])
def test_what_no_block_can_hold_is_refused(fmt: str, bad: float) -> None:
    drawn = np.zeros((2, 64), np.float32)
    drawn[1, 40] = bad
    with pytest.raises(ArithmeticError, match=r"not a number|too large"):
        quantize_to_blocks(drawn, "f32", fmt)
