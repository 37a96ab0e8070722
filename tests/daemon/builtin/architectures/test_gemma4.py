from __future__ import annotations

from typing import Any

import pytest

from llmd.api import KVGroup, ModelPlan, Multiply, TensorRef
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.gemma4 import plan
from tests.golden.models.catalog import tiny_model

DENSE = tiny_model("gemma4").config
SHARED = tiny_model("gemma4-shared").config


def planned(config: Any = DENSE, **changes: Any) -> ModelPlan:
    return plan({**config, **changes}, None)


def test_each_kind_of_layer_has_a_group_with_its_own_heads() -> None:
    assert planned().groups == (KVGroup(0, 12, 2, 32, (0, 1)), KVGroup(1, None, 1, 64, (2,)))
    assert planned(attention_k_eq_v=False).groups[1].kv_heads == 2


def test_groups_have_only_layers_with_keys_of_their_own() -> None:
    assert [group.layers for group in planned(SHARED).groups] == [(0, 1), (2,)]


def test_sizes_of_layers_may_be_stated_one_by_one() -> None:
    stated = {"2": {"head_dim": 64, "num_key_value_heads": 1}}
    without = {name: value for name, value in DENSE.items() if "global" not in name}
    assert planned(without, per_layer_config=stated) == planned()


def test_the_last_layer_sees_everything() -> None:
    assert planned(layer_types=["sliding_attention"] * 3).groups == planned().groups


def test_fields_that_transformers_omits_have_its_values() -> None:
    found = plan({"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text"}, None)
    assert (found.vocab_size, found.hidden_size, found.num_layers) == (262144, 2304, 30)
    assert [(group.window, group.head_dim) for group in found.groups] == [(512, 256), (None, 512)]
    assert any(ref.name == "model.embed_tokens_per_layer.weight" for ref in found.tensor_refs())


def test_the_unified_text_model_has_no_inputs_of_single_layers() -> None:
    text = {"model_type": "gemma4_unified_text", "num_hidden_layers": 6}
    found = plan({"architectures": ["Gemma4UnifiedForConditionalGeneration"], "text_config": text}, None)
    assert not any("per_layer" in ref.name for ref in found.tensor_refs())
    assert (found.groups[0].window, found.max_context_len) == (1024, 262144)


def test_every_layer_ends_with_its_factor() -> None:
    factors = [part.ops[-1] for part in planned().parts if part.kind == "ffn"]
    assert [op.factor for op in factors if isinstance(op, Multiply)] == [
        TensorRef(f"model.layers.{layer}.layer_scalar", (1,)) for layer in range(3)
    ]


def test_keys_that_no_layer_reads_are_left_out() -> None:
    marks = planned(SHARED).left_out[-1].marks
    assert "layers.3.self_attn.k_proj." in marks
    assert "blk.3.attn_k." in marks
    assert not any("layers.2." in mark for mark in marks)
    assert len(planned().left_out) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_kv_shared_layers": 3}, "no layer before these is like layer 0"),
        ({"num_kv_shared_layers": 2}, "no layer before these is like layer 2"),
        ({"num_global_key_value_heads": 3}, "layer 2 has 3 key-value heads for 4 query heads"),
        ({"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 130}, "below vocab_size 131"),
        ({"enable_moe_block": True, "num_experts": 2, "top_k_experts": 3}, "top_k_experts is 3"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        planned(**changes)


def test_only_images_may_be_seen_in_both_directions() -> None:
    assert planned(use_bidirectional_attention=None) == planned()
    with pytest.raises(UnsupportedModelError, match="use_bidirectional_attention is 'all'"):
        planned(use_bidirectional_attention="all")
