"""The tensor map follows from the two plans alone."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import ModelPlan
from llmd.conversion.output_plan import rotating
from llmd.conversion.tensor_map import Reorder, map_tensors
from llmd.models.gguf.tensor_names import as_stored
from tests.daemon.models.gguf.test_config_keys import plan_of
from tests.golden.models.catalog import tiny_model


def plan(name: str, **fields: Any) -> ModelPlan:
    return plan_of({**tiny_model(name).config, **fields})


def test_halves_of_a_head_become_neighbours_and_come_apart_again() -> None:
    to_pairs = Reorder(heads=2, head_dim=7, rotary_dim=6, interleaves=True)
    assert to_pairs.order().tolist() == [0, 3, 1, 4, 2, 5, 6, 7, 10, 8, 11, 9, 12, 13]
    to_halves = msgspec.structs.replace(to_pairs, interleaves=False)
    rows = np.arange(14)
    assert np.array_equal(rows[to_pairs.order()][to_halves.order()], rows)


def test_queries_and_keys_are_reordered_with_their_biases_and_nothing_else() -> None:
    source = plan("llama-mqa-biases")
    tensor_map = map_tensors(source, as_stored(rotating(source, interleaved=True), "llama"))
    reordered = {name: move.reorder.heads for name, move in tensor_map.items() if move.reorder is not None}
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
    assert tensor_map["blk.0.attn_qkv.weight"].ref.name == "model.layers.0.self_attn.qkv_proj.weight"
    assert tensor_map["blk.0.attn_qkv.weight"].ref.rows is None
    assert {move.ref.name for move in tensor_map.values()} == {ref.name for ref in source.tensor_refs()}


@pytest.mark.parametrize(("tied", "ops"), [(True, {"embed", "head"}), (False, {"embed"})])
def test_a_tensor_knows_every_op_that_uses_it(tied: bool, ops: set[str]) -> None:  # noqa: FBT001 - two cases
    source = plan("llama-f16", tie_word_embeddings=tied)
    assert map_tensors(source, source)["model.embed_tokens.weight"].ops == ops


def test_norms_of_gemma_are_shifted_by_what_is_added_to_them() -> None:
    source = plan("gemma2")
    there = as_stored(source, "gemma2")
    assert {move.shift for name, move in map_tensors(source, there).items() if "norm" in name} == {1.0}
    assert {move.shift for name, move in map_tensors(there, source).items() if "norm" in name} == {-1.0}
    assert map_tensors(source, there)["blk.0.attn_q.weight"].shift == 0
