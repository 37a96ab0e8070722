"""RWKV-7, as fla stores it."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import CONTEXT_LEN, TinyModel


def rwkv7(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "architectures": ["RWKV7ForCausalLM"],
        "model_type": "rwkv7",
        "vocab_size": 131,
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "head_dim": 16,
        "intermediate_size": 96,
        "decay_low_rank_dim": 24,
        "a_low_rank_dim": 16,
        "v_low_rank_dim": 8,
        "gate_low_rank_dim": 32,
        "hidden_act": "sqrelu",
        "norm_first": True,
        "norm_bias": True,
        "norm_eps": 1e-3,
        "attn": None,
        "max_position_embeddings": CONTEXT_LEN,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return shape | fields


CASES = (
    TinyModel("rwkv7", rwkv7(), dtype="bf16", seed=8),
    TinyModel(
        "rwkv7-odd",
        rwkv7(
            hidden_size=42,
            num_hidden_layers=4,
            head_dim=14,
            intermediate_size=76,
            decay_low_rank_dim=5,
            a_low_rank_dim=7,
            v_low_rank_dim=3,
            gate_low_rank_dim=11,
            norm_bias=False,
            tie_word_embeddings=True,
        ),
        gains={"embeddings": 0.1},
        seed=9,
    ),
)
