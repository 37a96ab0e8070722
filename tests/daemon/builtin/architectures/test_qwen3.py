from __future__ import annotations

from llmd.api import Norm
from llmd.builtin.architectures.qwen3 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("qwen3-tied").config


def test_queries_and_keys_are_normalised_per_head() -> None:
    norms = [op for op in plan(CONFIG, None).parts[1].ops if isinstance(op, Norm)]
    assert [(op.x, op.heads) for op in norms[1:]] == [("q", 4), ("k", 2)]


def test_heads_are_128_wide_where_nothing_is_said() -> None:
    unsaid = {name: value for name, value in CONFIG.items() if name != "head_dim"}
    assert plan(unsaid, None).groups[0].head_dim == 128
