from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.kimi_linear import kimi_linear_fields
from tests.daemon.models.gguf.test_families import fields


def test_tensors_say_which_layers_have_linear_attention(tmp_path: Path) -> None:
    found = kimi_linear_fields(fields(tmp_path, "kimi-linear", {}))
    linear, full = "linear_attention", "full_attention"
    assert found["layer_types"] == [linear, linear, full, linear]
    assert found["linear_attn_config"] == {"head_dim": 24, "num_heads": 4, "short_conv_kernel_size": 4}
    assert found["split_kv_b"]


def test_weights_of_experts_are_normalised_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert kimi_linear_fields(fields(tmp_path, "kimi-linear", {}))["norm_topk_prob"] is True
    stated = {"kimi-linear.expert_weights_norm": False}
    assert kimi_linear_fields(fields(tmp_path, "kimi-linear", stated))["norm_topk_prob"] is False
