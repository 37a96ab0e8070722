from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api import HIDDEN, Add, Experts, Gate, Glu, Linear, Norm, Op, Router, TensorRef
from llmd.api.errors import CheckpointError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import (
    ExpertNames,
    Mixture,
    SharedExpert,
    StackLayout,
    mixture_ops,
    read_top_k,
    shared_expert,
)
from llmd.builtin.architectures.shape import Shape

SHAPE = Shape(
    hidden_size=8, intermediate_size=20, vocab_size=30, num_layers=2, heads=2, kv_heads=1, head_dim=4
)
STYLE = LayerStyle(eps=1e-5, activation="silu", scale=0.5)


def ops(mixture: Mixture) -> tuple[Op, ...]:
    return mixture_ops(mixture, SHAPE, STYLE, 1)


def test_a_router_and_experts_stand_between_norm_and_residual() -> None:
    norm, router, experts, residual = ops(Mixture(6, 5, 2))
    assert isinstance(norm, Norm)
    assert isinstance(router, Router)
    assert isinstance(experts, Experts)
    assert residual == Add(HIDDEN, "y", HIDDEN)
    assert (router.x, router.top_k) == (experts.x, experts.top_k) == ("x", 2)
    assert router.weight == TensorRef("model.layers.1.mlp.gate.weight", (6, 8))
    assert experts.routes == router.out
    assert experts.gate == TensorRef(
        "model.layers.1.mlp.experts.*.gate_proj.weight", (6, 5, 8), is_stack=True
    )
    assert experts.down.shape == (6, 8, 5)


def test_gates_and_up_matrices_may_be_rows_of_one_stack() -> None:
    experts = next(
        op for op in ops(Mixture(6, 5, 2, ExpertNames(gate="both", up="both"))) if isinstance(op, Experts)
    )
    assert experts.gate == TensorRef("model.layers.1.both", (6, 10, 8), rows=(0, 5), is_stack=True)
    assert experts.up == TensorRef("model.layers.1.both", (6, 10, 8), rows=(5, 10), is_stack=True)


def test_rows_of_both_may_alternate_and_biases_are_stored_alike() -> None:
    names = ExpertNames(gate="both", up="both", router_bias="r", biases=("b", "b", "d"))
    layout = StackLayout(alternate=True, transposed=True)
    _, router, experts, _ = ops(Mixture(6, 5, 2, names, limit=7.0, offset=1.0, layout=layout))
    assert isinstance(router, Router)
    assert router.bias == TensorRef("model.layers.1.r", (6,))
    assert isinstance(experts, Experts)
    rows = TensorRef("model.layers.1.b", (6, 10), rows=(1, 2), period=2, is_stack=True)
    assert experts.up_bias == rows
    assert experts.up == structs.replace(
        rows, name="model.layers.1.both", shape=(6, 8, 10), is_transposed=True
    )
    assert experts.down_bias == TensorRef("model.layers.1.d", (6, 8), is_stack=True)
    assert (experts.limit, experts.offset) == (7.0, 1.0)


def test_a_shared_expert_is_added_and_may_be_opened_by_each_row() -> None:
    mixed = ops(Mixture(6, 5, 2, shared=shared_expert("shared", 7, "opening")))
    gate_up, glu, down, opening, gate, total = mixed[3:-1]
    assert isinstance(gate_up, Linear)
    assert [weight.shape for weight in gate_up.weights] == [(7, 8), (7, 8)]
    assert isinstance(glu, Glu)
    assert isinstance(down, Linear)
    assert down.weights[0].name == "model.layers.1.shared.down_proj.weight"
    assert isinstance(opening, Linear)
    assert opening.weights[0].shape == (1, 8)
    assert gate == Gate("shared", "opening", "shared")
    assert total == Add("y", "shared", "y")


def test_the_matrices_of_a_shared_expert_may_be_rows_of_one_tensor() -> None:
    gate_up = ops(Mixture(6, 5, 2, shared=SharedExpert(7, ("both", "both"), "down")))[3]
    assert isinstance(gate_up, Linear)
    assert [weight.rows for weight in gate_up.weights] == [(0, 7), (7, 14)]


def test_a_row_cannot_use_more_experts_than_there_are() -> None:
    assert read_top_k(ConfigFields({"num_experts_per_tok": 4}), 4) == 4
    with pytest.raises(CheckpointError, match="num_experts_per_tok is 5, but there are 4 experts"):
        read_top_k(ConfigFields({"num_experts_per_tok": 5}), 4)
