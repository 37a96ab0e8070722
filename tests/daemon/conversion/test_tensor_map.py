"""The tensor map follows from the two plans alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llmd.api import ModelPlan
from llmd.conversion.orders import HeadOrder
from llmd.conversion.output_plan import rotating
from llmd.conversion.tensor_map import MappedPart, MappedTensor, map_tensors
from llmd.models.gguf.tensor_names import as_stored
from tests.daemon.models.gguf.test_config_keys import plan_of
from tests.golden.models.catalog import tiny_model


def plan(name: str, **fields: Any) -> ModelPlan:
    return plan_of({**tiny_model(name).config, **fields})


def test_queries_and_keys_are_reordered_with_their_biases_and_nothing_else() -> None:
    source = plan("llama-mqa-biases")
    tensor_map = map_tensors(source, as_stored(rotating(source, interleaved=True), "llama"))
    reordered = {
        name: part.rows.heads for name, part in single_parts(tensor_map).items() if part.rows is not None
    }
    layers = range(source.num_layers)
    assert reordered == {
        f"blk.{layer}.{module}.{kind}": heads
        for layer in layers
        for module, heads in (("attn_q", 4), ("attn_k", 1))
        for kind in ("weight", "bias")
    }


def test_every_tensor_moves_once_under_the_name_of_the_target() -> None:
    source = plan("phi3-window")
    tensor_map = map_tensors(source, as_stored(source, "phi3"))
    parts = single_parts(tensor_map)
    assert parts["blk.0.attn_qkv.weight"].source.name == "model.layers.0.self_attn.qkv_proj.weight"
    assert parts["blk.0.attn_qkv.weight"].source.rows is None
    assert {part.source.name for part in parts.values()} == {ref.name for ref in source.tensor_refs()}


@pytest.mark.parametrize(("tied", "ops"), [(True, {"embed", "head"}), (False, {"embed"})])
def test_a_tensor_knows_every_op_that_uses_it(tied: bool, ops: set[str]) -> None:  # noqa: FBT001 - two cases
    source = plan("llama-f16", tie_word_embeddings=tied)
    assert map_tensors(source, source)["model.embed_tokens.weight"].ops == ops


def test_norms_of_gemma_are_shifted_by_what_is_added_to_them() -> None:
    source = plan("gemma2")
    there = as_stored(source, "gemma2")
    forth, back = (single_parts(map_tensors(*plans)) for plans in ((source, there), (there, source)))
    assert {part.shift for name, part in forth.items() if "norm" in name} == {1.0}
    assert {part.shift for name, part in back.items() if "norm" in name} == {-1.0}
    assert forth["blk.0.attn_q.weight"].shift == 0


def test_experts_become_a_stack_and_come_apart_again() -> None:
    source = plan("qwen3-moe")
    stored = as_stored(source, "qwen3moe")
    (part,) = map_tensors(source, stored)["blk.0.ffn_up_exps.weight"].parts
    assert part.source.name == "model.layers.0.mlp.experts.*.up_proj.weight"
    assert part.target.shape == (8, 32, 64)
    single = map_tensors(stored, source)["model.layers.0.mlp.experts.3.up_proj.weight"]
    assert single.ref.shape == (32, 64)
    assert [one.source.members for one in single.parts] == [(3, 4)]
    assert not single.parts[0].target.is_stack


def test_matrices_of_keys_and_values_are_apart_or_parts_of_one_tensor() -> None:
    source, split = plan("deepseek-v3"), plan("deepseek-v3", split_kv_b=True)
    apart = single_parts(map_tensors(source, as_stored(split, "deepseek2")))
    of_keys, of_values = apart["blk.0.attn_k_b.weight"].source, apart["blk.0.attn_v_b.weight"].source
    assert (of_keys.is_transposed, of_keys.columns, of_values.rows) == (True, (0, 32), (32, 64))
    joined = map_tensors(as_stored(split, "deepseek2"), source)["model.layers.0.self_attn.kv_b_proj.weight"]
    assert [(one.source.is_transposed, one.target.rows) for one in joined.parts] == [
        (True, (0, 32)),
        (False, (32, 64)),
    ]
    (same,) = map_tensors(source, source)["model.layers.0.self_attn.kv_b_proj.weight"].parts
    assert same.stays


def test_fused_gates_are_two_parts_of_one_tensor() -> None:
    source, separate = plan("gpt-oss-floats"), plan("gpt-oss-floats", fused_experts=False)
    split = map_tensors(source, as_stored(separate, "gpt-oss"))
    (up,) = split["blk.0.ffn_up_exps.weight"].parts
    assert (up.source.rows, up.source.period, up.source.is_transposed) == ((1, 2), 2, True)
    joined = map_tensors(as_stored(separate, "gpt-oss"), source)
    gate, up = joined["model.layers.0.mlp.experts.gate_up_proj"].parts
    assert (gate.target.rows, up.target.rows) == ((0, 1), (1, 2))
    assert gate.source.name == "blk.0.ffn_gate_exps.weight"


def test_heads_of_values_and_rates_take_on_the_other_form() -> None:
    source = plan("qwen3-5")
    form = plan("qwen3-5", tiled_heads=True, negative_rates=True)
    tensor_map = map_tensors(source, as_stored(form, "qwen35"))
    rates = tensor_map["blk.0.ssm_a"].parts[0]
    assert (rates.rates, rates.rows) == ("negative", HeadOrder(4, 2, 1, tiles=True))
    q, k, v = tensor_map["blk.0.attn_qkv.weight"].parts
    assert (q.rows, k.rows, v.rows) == (None, None, HeadOrder(4, 2, 24, tiles=True))
    assert v.target.rows == (64, 160)
    out = tensor_map["blk.0.ssm_out.weight"].parts[0]
    assert (out.rows, out.columns) == (None, HeadOrder(4, 2, 24, tiles=True))
    assert tensor_map["blk.0.ssm_norm.weight"].parts[0].stays


def single_parts(tensor_map: Mapping[str, MappedTensor]) -> dict[str, MappedPart]:
    """Return the only part of each tensor."""
    return {name: part for name, tensor in tensor_map.items() for (part,) in [tensor.parts]}
