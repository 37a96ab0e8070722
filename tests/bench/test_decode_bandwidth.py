"""What a step reads is counted, and compared with what the probe read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.decode_bandwidth import PROMPT, Decoding, lower_shape, table
from bench.shapes import SHAPES, Mixture, Shape

F32_BYTES = 4
SMALL = Shape("small", 256, 2, 4, 2, 64, 512, 320, tied=False)
MIXED = replace(SMALL, family="qwen3_moe", mixture=Mixture(8, 2, 256))


def norm_bytes(shape: Shape) -> int:
    """Return the bytes of the norms, which are vectors."""
    vectors = [dims[0] for dims in shape.tensors().values() if len(dims) == 1]
    return F32_BYTES * sum(vectors)


def test_a_step_reads_all_weights_but_the_table_and_the_keys_and_values_before_it() -> None:
    decoding = Decoding(SMALL, "q8")
    assert decoding.seconds() > 0
    matrices = (SMALL.products + SMALL.head_products) * (8 + 16 / 64) / 8
    assert decoding.step_bytes == matrices + norm_bytes(SMALL) + PROMPT * SMALL.kv_token_bytes


def test_of_experts_a_step_reads_those_that_one_row_uses() -> None:
    decoding = Decoding(MIXED, "q8")
    assert decoding.seconds() > 0
    router = MIXED.layers * 8 * MIXED.hidden
    quantized = MIXED.products + MIXED.head_products - router
    plain = 2 * router + norm_bytes(MIXED)
    assert decoding.step_bytes == quantized * 8.25 / 8 + plain + PROMPT * MIXED.kv_token_bytes


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_can_be_measured(name: str) -> None:
    shape = SHAPES[name].with_layers(1)
    assert lower_shape(shape, "q4").vocab_size == shape.vocab


def test_the_share_is_that_of_each_round() -> None:
    *_, row = table(300, [(100.0, 4.0), (200.0, 3.0), (100.0, 5.0)])
    assert row == "| 0.0 | 0.0 | 4000.0 | **0.60** (0.50–0.75) |"
