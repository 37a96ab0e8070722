from __future__ import annotations

from llmd.conversion.directory_shapes import directory_shapes
from tests.daemon.models.gguf.test_config_keys import plan


def test_matrices_of_heads_are_one_below_the_other() -> None:
    shapes = directory_shapes(plan("deepseek-v3"))
    assert shapes["model.layers.0.self_attn.kv_b_proj.weight"] == (4 * (32 + 32), 64)


def test_biases_of_vectors_have_a_row_for_each_token() -> None:
    shapes = directory_shapes(plan("deepseek-v4-published"))
    assert shapes["layers.2.attn.compressor.ape"] == (4, 2 * 32)
    assert shapes["layers.3.attn.compressor.ape"] == (128, 32)
    assert shapes["layers.0.attn.wo_a.weight"] == (2 * 24, 2 * 32)


def test_rates_of_kimi_have_four_axes() -> None:
    assert directory_shapes(plan("kimi-linear"))["model.layers.0.self_attn.A_log"] == (1, 1, 4, 1)
    assert directory_shapes(plan("qwen3-5")) == {}


def test_shares_and_bonuses_of_rwkv_have_more_axes() -> None:
    shapes = directory_shapes(plan("rwkv7"))
    assert shapes["model.layers.1.attn.x_r"] == (1, 1, 64)
    assert shapes["model.layers.1.attn.r_k"] == (4, 16)
    assert "model.layers.1.ffn.x_k" not in shapes
