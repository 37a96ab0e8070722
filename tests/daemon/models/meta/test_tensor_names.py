from __future__ import annotations

import pytest

from llmd.models.meta.tensor_names import meta_name


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("model.embed_tokens.weight", "tok_embeddings.weight"),
        ("model.layers.12.self_attn.q_proj.weight", "layers.12.attention.wq.weight"),
        ("model.layers.0.self_attn.o_proj.weight", "layers.0.attention.wo.weight"),
        ("model.layers.0.mlp.gate_proj.weight", "layers.0.feed_forward.w1.weight"),
        ("model.layers.0.mlp.down_proj.weight", "layers.0.feed_forward.w2.weight"),
        ("model.layers.0.mlp.up_proj.weight", "layers.0.feed_forward.w3.weight"),
        ("model.layers.0.input_layernorm.weight", "layers.0.attention_norm.weight"),
        ("model.layers.0.post_attention_layernorm.weight", "layers.0.ffn_norm.weight"),
        ("model.norm.weight", "norm.weight"),
        ("lm_head.weight", "output.weight"),
    ],
)
def test_each_module_has_its_name(name: str, theirs: str) -> None:
    assert meta_name(name) == theirs
