"""Translate ``params.json`` to the fields of transformers, and add what that file leaves out."""

from __future__ import annotations

from typing import Any

from llmd.models.meta.params_file import Params

DEFAULT_THETA = 10000.0
SCALED_ROPE = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What ``use_scaled_rope`` means. Source: the reference code of github.com/meta-llama/llama-models."""
LARGE_DIM = 4096
TEKKEN_SIZE = 1 << 17


def to_config(params: Params, vocab_size: int) -> dict[str, Any]:
    """Return the configuration; ``vocab_size`` is that of the embedding.

    RoPE rotates neighbouring elements in this layout; ``rope_interleave`` says so to the Llama and Mistral
    families.
    """
    family = "mistral" if params.is_mistral else "llama"
    return {
        "architectures": [f"{family.capitalize()}ForCausalLM"],
        "model_type": family,
        "hidden_size": params.dim,
        "intermediate_size": params.feed_forward_width,
        "num_hidden_layers": params.n_layers,
        "num_attention_heads": params.n_heads,
        "num_key_value_heads": params.kv_heads,
        "head_dim": params.head_dim or params.dim // params.n_heads,
        "vocab_size": vocab_size,
        "max_position_embeddings": context_len(params),
        "sliding_window": params.sliding_window,
        "rms_norm_eps": params.norm_eps,
        "rope_theta": params.rope_theta or DEFAULT_THETA,
        "rope_scaling": _rope_scaling(params),
        "rope_interleave": True,
        "tie_word_embeddings": params.tied_embeddings,
    }


def _rope_scaling(params: Params) -> dict[str, Any] | None:
    """Return the RoPE scaling. Llama 3.1 and 3.3 have factor 8, small 3.2 models 32; no file states it."""
    if not params.use_scaled_rope:
        return None
    return {**SCALED_ROPE, "factor": params.rope_scaling_factor or (8.0 if params.dim >= LARGE_DIM else 32.0)}


def context_len(params: Params) -> int:
    """Return the longest context in tokens: as stated, else that of the released model with such a file.

    Mistral's models with a vocabulary of 2^17 have 128 Ki tokens, older ones 32 Ki. Meta's models are
    recognised by the RoPE scaling of Llama 3.1, the RoPE bases of Code Llama and Llama 3, and the norm eps of
    the first Llama.
    """
    stated = params.max_seq_len or params.max_position_embeddings
    if stated is not None:
        return stated
    if params.is_mistral:
        return 131072 if params.vocab_size >= TEKKEN_SIZE else 32768
    if params.use_scaled_rope:
        return 131072
    if params.rope_theta is not None and params.rope_theta > DEFAULT_THETA:
        return 16384 if params.rope_theta == 1_000_000 else 8192
    return 2048 if params.norm_eps < 1e-5 else 4096
