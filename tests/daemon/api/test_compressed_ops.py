"""What the ops of compressed attention have."""

from __future__ import annotations

import pytest

from llmd.api import Compress, MergeAttention, TensorRef

BIAS = TensorRef("b", (32,))


@pytest.mark.parametrize(("overlap", "span"), [(False, 4), (True, 8)])
def test_a_vector_is_made_of_its_own_tokens_and_perhaps_of_as_many_before_them(
    *, overlap: bool, span: int
) -> None:
    op = Compress("x", "g", "v", BIAS, 1, 0, 4, 4, overlap)
    assert op.span == span
    assert (op.reads, op.writes, op.tensors) == (("x", "g"), ("v",), (BIAS,))


def test_results_are_merged_with_their_sums() -> None:
    assert MergeAttention("a", "s", "b", "t", "y", 2).reads == ("a", "s", "b", "t")
