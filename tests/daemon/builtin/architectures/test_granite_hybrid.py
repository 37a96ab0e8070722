from __future__ import annotations

from llmd.api import Attention, Experts, Linear, Rope
from llmd.api.state_ops import StateSpace
from llmd.builtin.architectures.granite_hybrid import plan
from tests.golden.models.catalog import tiny_model

DENSE = tiny_model("granite-hybrid").config
MIXTURE = tiny_model("granite-hybrid-moe").config


def kinds(config: dict[str, object]) -> list[list[str]]:
    return [[op.kind for op in part.ops] for part in plan(config, None).parts]


def test_layers_have_states_or_attention() -> None:
    made = plan(DENSE, None)
    states, paged = made.groups
    assert (states.kind, states.layers) == ("state", (0, 2))
    assert (paged.kind, paged.layers) == ("paged", (1,))
    old = {**DENSE, "layer_types": ["mamba", "attention", "mamba"]}
    assert plan(old, None) == made


def test_attention_has_positions_only_if_the_configuration_says_so() -> None:
    def ropes(config: dict[str, object]) -> int:
        return sum(isinstance(op, Rope) for part in plan(config, None).parts for op in part.ops)

    assert ropes({**DENSE}) == 0
    assert ropes({**DENSE, "position_embedding_type": "rope"}) == 2
    unstated = {name: value for name, value in DENSE.items() if name != "position_embedding_type"}
    assert ropes(unstated) == 0


def test_without_experts_the_shared_one_is_the_network() -> None:
    ops = next(part for part in plan(DENSE, None).parts if part.name == "layer 0 ffn").ops
    gate_up, down = (op for op in ops if isinstance(op, Linear))
    assert gate_up.weights[0].name == "model.layers.0.shared_mlp.input_linear.weight"
    assert gate_up.weights[1].rows == (88, 176)
    assert down.weights[0].name == "model.layers.0.shared_mlp.output_linear.weight"
    split = plan({**DENSE, "fused_experts": False}, None)
    names = {ref.name for ref in split.tensor_refs()}
    assert "model.layers.0.mlp.gate_proj.weight" in names


def test_experts_stand_beside_the_shared_one() -> None:
    ops = next(part for part in plan(MIXTURE, None).parts if part.name == "layer 1 ffn").ops
    assert any(isinstance(op, Experts) for op in ops)
    assert any(
        ref.name.endswith("shared_mlp.output_linear.weight") for op in ops for ref in op.tensors if ref
    )


def test_multipliers_are_those_of_granite() -> None:
    ops = [op for part in plan(DENSE, None).parts for op in part.ops]
    assert next(op for op in ops if isinstance(op, Attention)).scale == 0.28
    assert next(op for op in ops if isinstance(op, StateSpace)).head_dim == 32
