from __future__ import annotations

from typing import Any

import pytest

from llmd.api import Attention, Experts, Router, TensorRef
from llmd.api.errors import UnsupportedModelError
from llmd.builtin.architectures.gpt_oss import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("gpt-oss").config
FLOATS = tiny_model("gpt-oss-floats").config


def ops(config: Any, kind: type) -> list[Any]:
    return [op for part in plan(config, None).parts for op in part.ops if isinstance(op, kind)]


def test_every_second_layer_has_a_window_and_all_have_sinks() -> None:
    config = {name: value for name, value in CONFIG.items() if name != "layer_types"}
    groups = plan(config, None).groups
    assert [(group.window, group.layers) for group in groups] == [(12, (0, 2)), (None, (1,))]
    assert [op.sinks for op in ops(config, Attention)] == [
        TensorRef(f"model.layers.{layer}.self_attn.sinks", (4,)) for layer in range(3)
    ]


def test_experts_have_clamped_gates_and_biases() -> None:
    experts = ops(CONFIG, Experts)[1]
    assert (experts.activation, experts.limit, experts.offset, experts.top_k) == ("quick_gelu", 7.0, 1.0, 2)
    both = "model.layers.1.mlp.experts.gate_up_proj"
    assert experts.gate == TensorRef(both, (6, 192, 64), rows=(0, 1), period=2, is_stack=True)
    assert experts.up == TensorRef(both, (6, 192, 64), rows=(1, 2), period=2, is_stack=True)
    assert experts.up_bias == TensorRef(f"{both}_bias", (6, 192), rows=(1, 2), period=2, is_stack=True)
    assert experts.down_bias.shape == (6, 64)
    router = ops(CONFIG, Router)[1]
    assert (router.score, router.normalized) == ("softmax", True)
    assert router.bias == TensorRef("model.layers.1.mlp.router.bias", (6,))


def test_numbers_are_stored_transposed() -> None:
    experts = ops(FLOATS, Experts)[0]
    assert experts.gate.is_transposed
    assert (experts.gate.shape, experts.gate.view_shape) == ((5, 60, 74), (5, 37, 60))
    assert (experts.down.shape, experts.down.view_shape) == ((5, 37, 60), (5, 60, 37))


def test_files_of_gguf_have_a_tensor_for_each_matrix() -> None:
    experts = ops({**FLOATS, "fused_experts": False}, Experts)[0]
    assert experts.up == TensorRef("model.layers.0.mlp.experts.*.up_proj.weight", (5, 37, 60), is_stack=True)
    assert experts.gate_bias.name == "model.layers.0.mlp.experts.*.gate_proj.bias"


@pytest.mark.parametrize(
    ("wrong", "complaint"), [({"swiglu_alpha": 1.5}, "swiglu_alpha is 1.5"), ({"hidden_act": "gelu"}, "gelu")]
)
def test_other_gates_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnsupportedModelError, match=complaint):
        plan({**CONFIG, **wrong}, None)
