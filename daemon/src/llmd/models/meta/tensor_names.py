"""Tensor names in Meta's layout."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "model.embed_tokens": "tok_embeddings",
    "model.layers": "layers",
    "model.norm": "norm",
    "lm_head": "output",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attention_norm",
}


def meta_name(name: str) -> str:
    """Turn ``model.layers.0.self_attn.q_proj.weight`` into ``layers.0.attention.wq.weight``."""
    for module, theirs in NAMES.items():
        name = name.replace(f"{module}.", f"{theirs}.")
    return name
