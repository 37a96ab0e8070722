from __future__ import annotations

import msgspec

from llmd.api import Add, GeneralizedDelta, Norm, TokenShift
from llmd.builtin.architectures.rwkv7_layer import FIRST_VALUES, Layer, Ranks, Sizes, layer_ops

SIZES = Sizes(
    hidden=12,
    heads=3,
    head_dim=4,
    inner=20,
    ranks=Ranks(decay=5, rate=6, value=7, gate=8),
    eps=1e-5,
    has_norm_bias=True,
    activation="relu2",
    joined_shares=False,
)


def test_each_op_with_a_state_has_its_own_part_of_it() -> None:
    ops = [op for op in layer_ops(Layer(1, SIZES, 0)) if isinstance(op, TokenShift | GeneralizedDelta)]
    ranges = [(op.offset, op.offset + op.state_elements) for op in ops]
    assert ranges == [(0, 12), (24, 72), (12, 24)]
    assert SIZES.state_elements == 72


def test_the_first_layer_writes_the_values_that_all_others_read() -> None:
    first, second = (layer_ops(Layer(number, SIZES, 0)) for number in (0, 1))
    assert any(FIRST_VALUES in op.writes for op in first)
    assert not any(FIRST_VALUES in op.writes for op in second)
    moved = next(op for op in second if isinstance(op, Add) and op.a == FIRST_VALUES)
    assert moved.scale == -1.0


def test_heads_are_normed_with_weights_of_their_own() -> None:
    norm = next(op for op in layer_ops(Layer(1, SIZES, 0)) if isinstance(op, Norm) and op.own_weights)
    assert (norm.heads, norm.method, norm.eps) == (3, "layer", 4e-5)


def test_shares_may_be_rows_of_one_tensor() -> None:
    joined = Layer(2, msgspec.structs.replace(SIZES, joined_shares=True), 0)
    shift = next(op for op in layer_ops(joined) if isinstance(op, TokenShift))
    assert {ref.name for ref in shift.shares} == {"model.layers.2.attn.x_x"}
    assert [ref.rows for ref in shift.shares] == [(12 * n, 12 * n + 12) for n in range(6)]
