from __future__ import annotations

from llmd.api import GeneralizedDelta, TensorRef, TokenShift


def test_a_token_shift_keeps_a_row_and_writes_each_mix() -> None:
    shares = tuple(TensorRef("shares", (12,), rows=(first, first + 6)) for first in (0, 6))
    op = TokenShift("x", ("a", "b"), shares, group=0, layer=3, offset=4)
    assert (op.reads, op.writes, op.tensors) == (("x",), ("a", "b"), shares)
    assert op.state_elements == 6


def test_a_generalized_delta_keeps_a_matrix_for_each_head() -> None:
    vector = TensorRef("vector", (15,))
    op = GeneralizedDelta(
        *("r", "k", "v", "w", "a", "y", "b"), vector, vector, vector, group=0, layer=3, heads=3, head_dim=5
    )
    assert (op.reads, op.writes) == (("r", "k", "v", "w", "a"), ("y", "b"))
    assert op.state_elements == 3 * 5 * 5
    assert op.row_elements == 4 * 15
