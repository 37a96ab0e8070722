from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api import UnsupportedModelError
from llmd.models.gguf.indexers import sparse_fields
from tests.daemon.models.gguf.test_families import family_name, fields

TYPES = ["full", "full", "shared", "shared", "full", "shared"]


def test_the_sizes_of_indexers_are_read(tmp_path: Path) -> None:
    found = sparse_fields(fields(tmp_path, "deepseek-v32-odd", {}))
    assert (found["index_n_heads"], found["index_head_dim"], found["index_topk"]) == (13, 22, 7)
    assert found["indexer_types"] == ["full"] * 3
    assert family_name(tmp_path, "deepseek-v32-odd") == "DeepseekV32"
    assert family_name(tmp_path, "glm-moe-dsa") == "GlmMoeDsa"


def test_keys_say_which_layers_have_an_indexer_or_else_tensors(tmp_path: Path) -> None:
    unstated: dict[str, Any] = {"glm-dsa.attention.indexer.types": None}
    for changes in ({}, unstated):
        assert sparse_fields(fields(tmp_path, "glm-moe-dsa-shared", changes))["indexer_types"] == TYPES
    other = {"glm-dsa.attention.indexer.types": [True, False, False, False, True, False, True]}
    found = sparse_fields(fields(tmp_path, "glm-moe-dsa-shared", other))["indexer_types"]
    assert found == ["full", "shared", "shared", "shared", "full", "shared"], "the last is of a draft head"


def test_other_routers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="expert_gating_func"):
        sparse_fields(fields(tmp_path, "glm-moe-dsa", {"glm-dsa.expert_gating_func": 1}))
