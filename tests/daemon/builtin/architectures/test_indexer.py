from __future__ import annotations

from typing import Any

import pytest

from llmd.api import Attention, CheckpointError, Indexer, Linear, ModelPlan, Norm, Rope
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.glm_moe_dsa import plan
from llmd.builtin.architectures.indexer import Indexing, read_indexing, unused_indexers
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("glm-moe-dsa-shared").config


def planned(**changes: Any) -> ModelPlan:
    return plan({**CONFIG, **changes}, None)


def indexing(**changes: Any) -> Indexing:
    return read_indexing(ConfigFields({**CONFIG, **changes}), 16, interleaved=True)


def test_index_keys_have_a_group_with_the_layers_that_choose() -> None:
    latents, keys = planned().groups
    assert latents.layers == tuple(range(6))
    assert (keys.kind, keys.layers, keys.kv_heads, keys.key_dim) == ("latent", (0, 1, 4), 1, 20)
    choosing = [op for part in planned().parts for op in part.ops if isinstance(op, Indexer)]
    assert [(op.layer, op.group, op.top_k, op.heads, op.head_dim) for op in choosing] == [
        (layer, keys.id, 9, 11, 20) for layer in keys.layers
    ]
    attending = [op for part in planned().parts for op in part.ops if isinstance(op, Attention)]
    assert {(op.group, op.chosen) for op in attending} == {(latents.id, "chosen")}


def test_the_choice_reaches_later_layers_only_if_they_share_it() -> None:
    assert planned().carried == ("chosen",)
    assert planned(indexer_types=None).carried == ()


def test_queries_come_from_the_vector_of_low_rank_and_keys_from_the_hidden_state() -> None:
    ops = planned().parts[1].ops
    linear = [op for op in ops if isinstance(op, Linear)]
    made = [(out, op.x, ref) for op in linear for out, ref in zip(op.outs, op.weights, strict=True)]
    base = "model.layers.0.self_attn.indexer."
    found = {
        out: (x, ref.name.removeprefix(base), ref.shape) for out, x, ref in made if ref.name.startswith(base)
    }
    assert found == {
        "index_k": ("x", "wk.weight", (20, 60)),
        "head_weights": ("x", "weights_proj.weight", (11, 60)),
        "index_q": ("q_low", "wq_b.weight", (220, 32)),
    }
    (norm,) = (op for op in ops if isinstance(op, Norm) and op.x == "index_k")
    assert (norm.method, norm.eps, norm.bias is not None) == ("layer", 1e-6, True)
    ropes = {op.x: (op.heads, op.head_dim, op.table.rotary_dim) for op in ops if isinstance(op, Rope)}
    assert (ropes["index_q"], ropes["index_k"]) == ((11, 20, 16), (1, 20, 16))


def test_layers_that_choose_follow_from_types_or_an_interval() -> None:
    assert indexing().layers == (0, 1, 4)
    assert indexing(indexer_types=None).layers == tuple(range(6))
    spaced = {"indexer_types": None, "num_hidden_layers": 12, "index_topk_freq": 4}
    assert indexing(**spaced, index_skip_topk_offset=3).layers == (0, 1, 2, 6, 10), "as in GLM-5.2"
    assert indexing(**spaced).layers == (0, 1, 5, 9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indexer_types": ["shared"] * 6}, "the first layer has no indexer"),
        ({"index_head_dim": 12}, "index_head_dim 12 is less than the 16 elements"),
        ({"q_lora_rank": None}, "q_lora_rank"),
        ({"index_topk": 0}, "index_topk"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        indexing(**changes)


def test_indexers_of_layers_that_share_a_choice_are_left_out() -> None:
    (left_out,) = unused_indexers(indexing(), 6)
    marks = [f"layers.{layer}.self_attn.indexer." for layer in (2, 3, 5)]
    assert [mark for mark in left_out.marks if mark.startswith("layers")] == marks
    assert "blk.5.indexer." in left_out.marks
    assert unused_indexers(indexing(indexer_types=None), 6) == ()
