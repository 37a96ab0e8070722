"""The names of DeepSeek-V4. test_tensor_names.py compares those of a whole model."""

from __future__ import annotations

import pytest

from llmd.models.gguf.deepseek4_names import deepseek4_name


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("embed.weight", "token_embd.weight"),
        ("hc_head_scale", "output_hc_scale.weight"),
        ("layers.12.attn.kv_norm.weight", "blk.12.attn_kv_a_norm.weight"),
        ("layers.0.ffn_norm.weight", "blk.0.ffn_norm.weight"),
        ("layers.3.attn.indexer.compressor.wgate.weight", "blk.3.indexer_compressor_gate.weight"),
        ("layers.3.ffn.experts.*.w2.weight", "blk.3.ffn_down_exps.weight"),
        ("layers.3.ffn.gate.tid2eid", "blk.3.ffn_gate_tid2eid.weight"),
        ("layers.3.ffn.gate.bias", "blk.3.exp_probs_b.bias"),
    ],
)
def test_a_tensor_has_the_name_of_llama_cpp(name: str, stored: str) -> None:
    assert deepseek4_name(name) == stored


def test_a_name_that_no_file_knows_stays() -> None:
    assert deepseek4_name("score.weight") == "score.weight"
    assert deepseek4_name("layers.3.other.weight") == "blk.3.other.weight"
