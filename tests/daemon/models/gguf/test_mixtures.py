from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.mixtures import deepseek2_fields, dense_first, expert_width, sigmoid_experts
from tests.daemon.models.gguf.test_families import fields


def test_layers_of_a_draft_head_do_not_count(tmp_path: Path) -> None:
    found = fields(tmp_path, "deepseek-v3", {"deepseek2.nextn_predict_layers": 1})
    assert dense_first(found) == {"num_hidden_layers": 2, "first_k_dense_replace": 1}


def test_a_file_may_state_only_the_width_of_all_experts_of_a_row(tmp_path: Path) -> None:
    assert expert_width(fields(tmp_path, "mixtral", {"llama.feed_forward_length": 80})) == 40


def test_another_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="expert_gating_func is 1"):
        sigmoid_experts(fields(tmp_path, "glm4-moe", {"glm4moe.expert_gating_func": 1}))


def test_sizes_of_heads_are_those_that_attention_sees(tmp_path: Path) -> None:
    found = deepseek2_fields(fields(tmp_path, "deepseek-v3", {}))
    sizes = [found[name] for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")]
    assert sizes == [32, 16, 32, 64]
