from __future__ import annotations

from llmd.api import Experts, Rope
from llmd.api.state_ops import GatedDelta
from llmd.builtin.architectures.qwen3_5 import plan
from tests.golden.models.catalog import tiny_model

DENSE = tiny_model("qwen3-5").config
MIXTURE = tiny_model("qwen3-5-moe").config


def test_the_text_model_may_be_below_a_vision_tower() -> None:
    whole = {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": dict(DENSE)}
    assert plan(whole, None) == plan(DENSE, None)
    assert "model.visual." in plan(whole, None).left_out[0].marks


def test_experts_are_one_tensor_and_files_of_gguf_have_two() -> None:
    def gate(config: dict[str, object]) -> tuple[str, tuple[int, int] | None]:
        ops = (op for part in plan(config, None).parts for op in part.ops)
        found = next(op for op in ops if isinstance(op, Experts)).gate
        assert found is not None
        return found.name, found.rows

    assert gate({**MIXTURE}) == ("model.layers.0.mlp.experts.gate_up_proj", (0, 32))
    separate = ("model.layers.0.mlp.experts.*.gate_proj.weight", None)
    assert gate({**MIXTURE, "fused_experts": False}) == separate


def test_a_quarter_of_a_head_is_rotated_unless_the_configuration_says_otherwise() -> None:
    def rotated(config: dict[str, object]) -> int:
        ops = (op for part in plan(config, None).parts for op in part.ops)
        return next(op for op in ops if isinstance(op, Rope)).table.rotary_dim

    unstated = {name: value for name, value in DENSE.items() if name != "partial_rotary_factor"}
    assert rotated(unstated) == 8
    assert rotated({**unstated, "rope_parameters": {"partial_rotary_factor": 0.5}}) == 16


def test_files_of_gguf_have_other_rates_and_another_order_of_heads() -> None:
    changed = {**DENSE, "negative_rates": True, "tiled_heads": True}
    ops = (op for part in plan(changed, None).parts for op in part.ops)
    delta = next(op for op in ops if isinstance(op, GatedDelta))
    assert (delta.rates_as, delta.tiled) == ("negative", True)
