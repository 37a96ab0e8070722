from __future__ import annotations

from typing import Any

from llmd.api import HIDDEN, Add, Attention, Linear, Norm, Rope, RopeTable
from llmd.builtin.architectures.layer import LayerStyle, feed_forward_ops, mixer_ops
from llmd.builtin.architectures.shape import Shape

SHAPE = Shape(48, 96, 131, 2, 4, 2, 10)
TABLE = RopeTable((1.0, 0.1))


def style(**changes: Any) -> LayerStyle:
    return LayerStyle(eps=1e-5, activation="silu", scale=0.3, **changes)


def kinds(ops: tuple[Any, ...]) -> list[str]:
    return [op.kind for op in ops]


def test_a_mixer_normalises_projects_rotates_attends_and_adds() -> None:
    ops = mixer_ops(SHAPE, style(), 1, 0, TABLE)
    assert kinds(ops) == ["norm", "linear", "rope", "rope", "attention", "linear", "add"]
    attention = next(op for op in ops if isinstance(op, Attention))
    assert (attention.layer, attention.heads, attention.kv_heads, attention.head_dim) == (1, 4, 2, 10)
    assert attention.scale == 0.3


def test_a_feed_forward_network_gates() -> None:
    assert kinds(feed_forward_ops(SHAPE, style(), 0)) == ["norm", "linear", "glu", "linear", "add"]


def test_each_part_writes_the_residual_stream_last() -> None:
    for ops in (
        mixer_ops(SHAPE, style(), 0, 0, TABLE),
        feed_forward_ops(SHAPE, style(), 0),
    ):
        assert isinstance(ops[-1], Add)
        assert (ops[-1].a, ops[-1].out) == (HIDDEN, HIDDEN)
        assert all(HIDDEN not in op.writes for op in ops[:-1])


def test_what_a_part_adds_is_scaled() -> None:
    add = feed_forward_ops(SHAPE, style(residual_scale=0.5), 0)[-1]
    assert isinstance(add, Add)
    assert add.scale == 0.5


def test_without_norms_before_a_part_reads_the_residual_stream_itself() -> None:
    post = style(pre_norms=None, post_norms=("a", "b"))
    assert kinds(feed_forward_ops(SHAPE, post, 0)) == ["linear", "glu", "linear", "norm", "add"]
    mixer = mixer_ops(SHAPE, post, 0, 0, TABLE)
    assert mixer[0].reads == (HIDDEN,)
    assert isinstance(mixer[-2], Norm)
    assert mixer[-2].weight is not None
    assert mixer[-2].weight.name == "model.layers.0.a.weight"


def test_queries_and_keys_are_normalised_before_they_are_rotated() -> None:
    ops = mixer_ops(SHAPE, style(qk_norm="head"), 0, 0, TABLE)
    norms = [op for op in ops if isinstance(op, Norm)][1:]
    assert [(op.x, op.heads) for op in norms] == [("q", 4), ("k", 2)]
    assert all(op.weight is not None and op.weight.shape == (10,) for op in norms)
    assert max(map(ops.index, norms)) < min(i for i, op in enumerate(ops) if isinstance(op, Rope))


def test_norms_over_the_whole_width_have_a_weight_for_each_element() -> None:
    ops = mixer_ops(SHAPE, style(qk_norm="width"), 0, 0, TABLE)
    norms = [op for op in ops if isinstance(op, Norm)][1:]
    assert [(op.heads, op.weight and op.weight.shape) for op in norms] == [(1, (40,)), (1, (20,))]


def test_fused_projections_are_rows_of_one_tensor() -> None:
    linear = mixer_ops(SHAPE, style(fused_qkv=True), 0, 0, TABLE)[1]
    assert isinstance(linear, Linear)
    assert {ref.name for ref in linear.weights} == {"model.layers.0.self_attn.qkv_proj.weight"}
    assert [ref.rows for ref in linear.weights] == [(0, 40), (40, 60), (60, 80)]
    assert all(ref.shape == (80, 48) for ref in linear.weights)
    gate_up = feed_forward_ops(SHAPE, style(gate_up="fused"), 0)[1]
    assert isinstance(gate_up, Linear)
    assert [ref.rows for ref in gate_up.weights] == [(0, 96), (96, 192)]


def test_biases_stand_where_the_style_has_them() -> None:
    mixer = mixer_ops(SHAPE, style(qkv_bias=True), 0, 0, TABLE)
    qkv, out = (op for op in mixer if isinstance(op, Linear))
    assert [bias and bias.shape for bias in qkv.biases] == [(40,), (20,), (20,)]
    assert out.biases == (None,)
    up, down = (op for op in feed_forward_ops(SHAPE, style(mlp_bias=True), 0) if isinstance(op, Linear))
    assert [bias and bias.shape for bias in (*up.biases, *down.biases)] == [(96,), (96,), (48,)]
