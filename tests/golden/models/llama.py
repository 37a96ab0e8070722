"""Llama and what shares its program: CodeLlama, TinyLlama, SmolLM."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def llama(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    return config("LlamaForCausalLM", "llama", **(shape | fields))


LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 48,
}
YARN_ROPE = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 4.0,
    "beta_slow": 0.25,
}
LLAMA32_ROPE = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""That of the small models of Llama 3.2, as it is."""
DYNAMIC_ROPE = {"type": "dynamic", "factor": 3.0}

CASES = (
    TinyModel("llama2-mha", llama(num_key_value_heads=4, num_hidden_layers=4), seed=4),
    TinyModel(
        "llama3-gqa-tied",
        llama(vocab_size=257, rope_theta=500000.0, rope_scaling=LLAMA3_ROPE, tie_word_embeddings=True),
        seed=16,
    ),
    TinyModel(
        "llama32-tied",
        llama(vocab_size=258, rope_theta=500000.0, rope_scaling=LLAMA32_ROPE, tie_word_embeddings=True),
        dtype="bf16",
    ),
    TinyModel(
        "llama-mqa-biases",
        llama(
            hidden_size=52,
            intermediate_size=99,
            num_key_value_heads=1,
            head_dim=18,
            attention_bias=True,
            mlp_bias=True,
        ),
        seed=2,
    ),
    TinyModel("llama-linear-rope", llama(rope_scaling={"type": "linear", "factor": 2.5})),
    TinyModel("llama-yarn-rope", llama(head_dim=32, rope_scaling=YARN_ROPE), seed=4),
    TinyModel("llama-dynamic-rope-within", llama(rope_scaling=DYNAMIC_ROPE)),
    TinyModel(
        "llama-dynamic-rope-beyond", llama(rope_scaling=DYNAMIC_ROPE, max_position_embeddings=64), seed=2
    ),
    TinyModel("llama-bf16-sharded", llama(), dtype="bf16", num_shards=3, seed=6),
    TinyModel("llama-fatrelu", llama(hidden_act="fatrelu", hidden_act_param=0.2), seed=2),
    TinyModel("llama-f16", llama(num_hidden_layers=3), dtype="f16"),
    TinyModel("codellama", llama(vocab_size=139, rope_theta=1000000.0, num_key_value_heads=4), dtype="bf16"),
    TinyModel(
        "tinyllama",
        llama(num_attention_heads=8, num_key_value_heads=1, rms_norm_eps=2e-3),
        dtype="f16",
        seed=2,
    ),
    TinyModel(
        "smollm",
        llama(
            vocab_size=193,
            hidden_size=54,
            intermediate_size=130,
            num_attention_heads=9,
            num_key_value_heads=3,
            tie_word_embeddings=True,
        ),
        dtype="bf16",
        seed=8,
    ),
)
