from __future__ import annotations

from llmd.api import Indexer, Rope, Router
from llmd.builtin.architectures.glm_moe_dsa import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("glm-moe-dsa").config


def test_indexers_rotate_neighbours_unless_the_configuration_says_otherwise() -> None:
    def pairs(**changes: bool) -> set[bool]:
        ops = plan({**CONFIG, **changes}, None).parts[1].ops
        return {op.interleaved for op in ops if isinstance(op, Rope) and op.x.startswith("index")}

    assert pairs() == {True}
    assert pairs(indexer_rope_interleave=False) == {False}


def test_what_a_configuration_leaves_out_is_as_in_glm_5() -> None:
    left_out = ("n_group", "topk_group", "routed_scaling_factor", "index_n_heads")
    found = plan({name: value for name, value in CONFIG.items() if name not in left_out}, None)
    ops = [op for part in found.parts for op in part.ops]
    (router, *_) = (op for op in ops if isinstance(op, Router))
    assert (router.groups, router.top_groups, router.factor) == (1, 1, 2.5)
    (indexer, *_) = (op for op in ops if isinstance(op, Indexer))
    assert indexer.heads == 32


def test_layers_without_experts_are_stated_or_the_first_three() -> None:
    def dense(**changes: object) -> list[bool]:
        parts = plan({**CONFIG, "num_hidden_layers": 5, **changes}, None).parts
        return ["experts" not in {op.kind for op in part.ops} for part in parts if part.kind == "ffn"]

    assert dense(first_k_dense_replace=None) == [True] * 3 + [False] * 2
    assert dense(mlp_layer_types=["dense", *["sparse"] * 4]) == [True] + [False] * 4
