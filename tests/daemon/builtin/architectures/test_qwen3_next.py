from __future__ import annotations

from typing import Any

from llmd.api import Attention, Experts, Gate, Linear, ModelPlan, Norm, TensorRef
from llmd.api.state_ops import GatedDelta
from llmd.builtin.architectures.qwen3_next import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("qwen3-next").config
ODD = tiny_model("qwen3-next-odd").config


def mixers(made: ModelPlan, kind: type) -> list[int]:
    """Return the layers whose first part has an op of that kind."""
    parts = [part for part in made.parts if part.kind == "mixer"]
    return [part.layer or 0 for part in parts if any(isinstance(op, kind) for op in part.ops)]


def test_layers_keep_states_or_keys_and_values() -> None:
    made = plan(ODD, None)
    assert (mixers(made, Attention), mixers(made, GatedDelta)) == ([0, 3], [1, 2])
    paged, states = made.groups
    assert (paged.kind, paged.layers) == ("paged", (0, 3))
    assert (states.kind, states.layers) == ("state", (1, 2))
    assert states.state_bytes == 4 * (2 * (21 + 21 + 57) + 3 * 7 * 19)


def test_every_fourth_layer_attends_unless_the_configuration_lists_them() -> None:
    unlisted: dict[str, Any] = {name: value for name, value in CONFIG.items() if name != "layer_types"}
    assert mixers(plan({**unlisted, "num_hidden_layers": 8}, None), Attention) == [3, 7]
    assert mixers(plan({**unlisted, "full_attention_interval": 2}, None), Attention) == [1]


def test_attention_has_a_gate_for_each_element_of_its_output() -> None:
    ops = next(part for part in plan(CONFIG, None).parts if part.name == "layer 2 mixer").ops
    project = next(op for op in ops if isinstance(op, Linear))
    name = "model.layers.2.self_attn.q_proj.weight"
    assert project.outs == ("q", "k", "v", "gate")
    assert project.weights[0] == TensorRef(name, (256, 64), rows=(0, 32), period=64)
    assert project.weights[3] == TensorRef(name, (256, 64), rows=(32, 64), period=64)
    assert Gate("y", "gate", "y") in ops


def test_norms_add_one_to_their_weights_but_not_those_of_states() -> None:
    norms = [op for part in plan(CONFIG, None).parts for op in part.ops if isinstance(op, Norm)]
    offsets = {op.offset for op in norms if op.weight and op.weight.name.endswith("linear_attn.norm.weight")}
    assert offsets == {0.0}
    assert {op.offset for op in norms if op.weight and "linear_attn" not in op.weight.name} == {1.0}


def test_layers_without_experts_are_those_between_the_steps() -> None:
    parts = [part for part in plan(ODD, None).parts if part.kind == "ffn"]
    assert [any(isinstance(op, Experts) for op in part.ops) for part in parts] == [False, True, False, True]


def test_the_draft_head_is_left_out() -> None:
    (draft,) = plan(CONFIG, None).left_out
    assert "mtp." in draft.marks
