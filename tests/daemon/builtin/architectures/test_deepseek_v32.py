from __future__ import annotations

from llmd.api import Indexer, Rope, Router
from llmd.builtin.architectures.deepseek_v32 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("deepseek-v32").config


def test_each_layer_chooses_positions_and_rotates_halves_for_it() -> None:
    layers = [part.ops for part in plan(CONFIG, None).parts if part.kind == "mixer"]
    assert all(sum(isinstance(op, Indexer) for op in ops) == 1 for ops in layers)
    pairs = {op.x: op.interleaved for ops in layers for op in ops if isinstance(op, Rope)}
    assert pairs == {"q_rope": True, "k_rope": True, "index_q": False, "index_k": False}


def test_what_a_configuration_leaves_out_is_as_in_deepseek_v32() -> None:
    left_out = ("n_group", "topk_group", "routed_scaling_factor", "index_n_heads", "index_topk")
    found = plan({name: value for name, value in CONFIG.items() if name not in left_out}, None)
    ops = [op for part in found.parts for op in part.ops]
    (router, *_) = (op for op in ops if isinstance(op, Router))
    assert (router.groups, router.top_groups, router.factor) == (8, 4, 2.5)
    (indexer, *_) = (op for op in ops if isinstance(op, Indexer))
    assert (indexer.heads, indexer.top_k) == (64, 2048)
