"""Vectors that stand for several tokens, and attention merged from two sets of positions."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import Compress, KVGroup, MergeAttention, TensorRef
from llmd.builtin.reference import numerics
from llmd.builtin.reference.compression import compress_rows, merge_attention
from llmd.builtin.reference.kv import KVPool, PagedKeys

STRIDE, DIM, LENGTH = 4, 3, 11


def kept_rows(x: np.ndarray, gate: np.ndarray) -> PagedKeys:
    """Return the rows as a step keeps them."""
    group = KVGroup(0, None, 1, 2 * x.shape[1], (0,), kind="latent")
    table, positions = np.arange(1, dtype=np.int32), np.arange(len(x), dtype=np.int32)
    kept = PagedKeys(KVPool(group, 1, "f32"), 0, table, positions)
    rows = np.concatenate([x, gate], axis=1)[:, None].astype(np.float32)
    kept.write(rows, rows)
    return kept


@pytest.mark.parametrize("overlap", [False, True])
def test_a_row_that_completes_a_vector_has_the_weighted_sum_of_its_tokens(*, overlap: bool) -> None:
    draw = np.random.default_rng(1)
    width = DIM * (1 + overlap)
    x, gate = (draw.standard_normal((LENGTH, width)).astype(np.float32) for _ in "xg")
    bias = draw.standard_normal((STRIDE, width))
    op = Compress("x", "g", "o", TensorRef("b", (bias.size,)), 0, 0, DIM, STRIDE, overlap)
    out = compress_rows(op, bias, kept_rows(x, gate), list(range(LENGTH)))
    for row in range(LENGTH):
        if row % STRIDE != STRIDE - 1:
            assert not out[row].any()
            continue
        own = [(t, width - DIM) for t in range(row - STRIDE + 1, row + 1)]
        before = [(t, 0) for t in range(max(0, row - 2 * STRIDE + 1), row - STRIDE + 1) if overlap]
        for element in range(DIM):
            places = [(t, first + element) for t, first in before + own]
            powers = np.exp([float(gate[t, c]) + bias[t % STRIDE, c] for t, c in places])
            values = [float(x[t, c]) for t, c in places]
            assert out[row, element] == pytest.approx(float(powers @ values / powers.sum()), rel=1e-5)


def test_attention_to_two_sets_is_attention_to_both() -> None:
    draw = np.random.default_rng(2)
    q, keys = draw.standard_normal((4, 6)), draw.standard_normal((9, 1, 6))
    whole = numerics.attend(q, keys, keys, 0.5, None).reshape(1, -1)
    for cut in (0, 4, 9):
        parts = [
            found
            for some in (keys[:cut], keys[cut:])
            for found in (
                numerics.attend(q, some, some, 0.5, None).reshape(1, -1),
                numerics.attention_sums(q, some, 0.5, None)[None],
            )
        ]
        merged = merge_attention(MergeAttention("a", "s", "b", "t", "o", 4), *parts)
        np.testing.assert_allclose(merged, whole, rtol=1e-12)
