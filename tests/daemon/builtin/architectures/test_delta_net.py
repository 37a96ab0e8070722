from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api import Glu, Linear, Norm, TensorRef
from llmd.api.errors import CheckpointError
from llmd.api.state_ops import GatedDelta
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.delta_net import DeltaNet, delta_ops, read_delta_net
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import Shape

SHAPE = Shape(
    hidden_size=8, intermediate_size=20, vocab_size=30, num_layers=2, heads=2, kv_heads=1, head_dim=4
)
STYLE = LayerStyle(eps=1e-5, activation="silu", scale=0.5, norm_offset=1.0)
LAYER = "model.layers.1.linear_attn"


APART = DeltaNet(heads=4, key_heads=2, key_dim=3, value_dim=5, taps=4)
FUSED = structs.replace(APART, fused_qkvz=True, fused_ba=True)


def ops(net: DeltaNet) -> tuple[Any, ...]:
    return delta_ops(net, SHAPE, STYLE, 1, 7)


def test_the_rule_stands_between_projections_and_a_gated_norm() -> None:
    pre_norm, projections, delta, norm, glu, out, _ = ops(APART)
    assert (pre_norm.offset, norm.offset) == (1.0, 0.0)
    assert isinstance(projections, Linear)
    assert projections.outs == ("q", "k", "v", "z", "beta", "decay")
    assert isinstance(delta, GatedDelta)
    assert (delta.group, delta.layer, delta.taps) == (7, 1, 4)
    assert delta.state_elements * 4 == APART.state_bytes
    assert norm == Norm("y", "y", TensorRef(f"{LAYER}.norm.weight", (5,)), 1e-5, heads=4)
    assert glu == Glu("z", "y", "y", "silu")
    assert out.weights[0] == TensorRef(f"{LAYER}.out_proj.weight", (8, 20))


def test_convolutions_are_rows_of_one_tensor() -> None:
    delta = ops(FUSED)[2]
    assert [ref.rows for ref in (delta.q_taps, delta.k_taps, delta.v_taps)] == [(0, 6), (6, 12), (12, 32)]
    assert delta.v_taps.shape == (32, 1, 4)


def test_one_tensor_may_have_the_rows_of_each_key_head_in_turn() -> None:
    q, k, v, z, beta, decay = ops(FUSED)[1].weights
    assert q == TensorRef(f"{LAYER}.in_proj_qkvz.weight", (52, 8), rows=(0, 3), period=26)
    assert [ref.rows for ref in (k, v, z)] == [(3, 6), (6, 16), (16, 26)]
    assert beta == TensorRef(f"{LAYER}.in_proj_ba.weight", (8, 8), rows=(0, 2), period=4)
    assert decay.rows == (2, 4)
    assert [ref.view_shape[0] for ref in (q, k, v, z, beta, decay)] == [6, 6, 20, 20, 4, 4]


def test_or_each_value_may_have_its_own() -> None:
    q, k, v, z, beta, _ = ops(APART)[1].weights
    assert q == TensorRef(f"{LAYER}.in_proj_qkv.weight", (32, 8), rows=(0, 6))
    assert [ref.rows for ref in (k, v)] == [(6, 12), (12, 32)]
    assert z == TensorRef(f"{LAYER}.in_proj_z.weight", (20, 8))
    assert beta == TensorRef(f"{LAYER}.in_proj_b.weight", (4, 8))


def test_heads_of_keys_divide_those_of_values() -> None:
    assert read_delta_net(ConfigFields({}), fused=True).state_bytes == 4 * (3 * 8192 + 32 * 128 * 128)
    fields = ConfigFields({"linear_num_value_heads": 6, "linear_num_key_heads": 4})
    with pytest.raises(CheckpointError, match="4 does not divide linear_num_value_heads 6"):
        read_delta_net(fields, fused=True)
