"""The keys of Gemma 4, many of which differ between layers of full and of windowed attention.

Source: ``convert_hf_to_gguf.py`` and ``src/models/gemma4.cpp`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmd.models.gguf.fields import PATTERN, WINDOW, GgufFields

FULL, LOCAL = "full_attention", "sliding_attention"
ROPE_PART = 0.25
"""Of a head in layers of full attention, in files without the tensor that says so."""


def gemma4_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only this family has, or whose values differ between layers.

    Raises:
        CheckpointError: a key is missing, has the wrong type, or has values for another number of layers.
    """
    num_layers = fields.integer("block_count")
    sliding = [bool(one) for one in fields.each(PATTERN, num_layers)]
    num_shared = fields.integer("attention.shared_kv_layers", 0)
    return {
        "head_dim": fields.integer("attention.key_length_swa"),
        "layer_types": [LOCAL if one else FULL for one in sliding],
        "per_layer_config": _layers(fields, sliding),
        "num_kv_shared_layers": num_shared,
        "use_double_wide_mlp": _widens(fields.each("feed_forward_length", num_layers), num_shared),
        "attention_k_eq_v": _value_is_key(fields, sliding[: num_layers - num_shared]),
        "attention_bias": fields.has_tensor("blk.0.attn_q.bias"),
        "hidden_size_per_layer_input": fields.integer("embedding_length_per_layer_input", 0),
        "sliding_window": fields.integer(WINDOW),
        "final_logit_softcapping": fields.real("final_logit_softcapping", None),
        "rope_parameters": _ropes(fields),
        **_experts(fields),
    }


def _layers(fields: GgufFields, sliding: Sequence[bool]) -> dict[str, Any]:
    """Return the sizes of the heads of each layer."""
    kv_heads = fields.each("attention.head_count_kv", len(sliding))
    dims = {slides: fields.integer(f"attention.key_length{'_swa' * slides}") for slides in (False, True)}
    return {
        str(layer): {"head_dim": dims[slides], "num_key_value_heads": heads}
        for layer, (slides, heads) in enumerate(zip(sliding, kv_heads, strict=True))
    }


def _widens(widths: Sequence[int], num_shared: int) -> bool:
    """Return whether layers that read the keys of others have feed-forward networks of twice the width."""
    return num_shared > 0 and widths[-1] == 2 * widths[0]


def _value_is_key(fields: GgufFields, sliding: Sequence[bool]) -> bool:
    full = next((layer for layer, slides in enumerate(sliding) if not slides), None)
    return full is not None and not fields.has_tensor(f"blk.{full}.attn_v.weight")


def _ropes(fields: GgufFields) -> dict[str, Any]:
    return {
        FULL: {
            "rope_type": "proportional",
            "partial_rotary_factor": ROPE_PART,
            "rope_theta": fields.real("rope.freq_base", 1000000.0),
        },
        LOCAL: {"rope_type": "default", "rope_theta": fields.real("rope.freq_base_swa", 10000.0)},
    }


def _experts(fields: GgufFields) -> dict[str, Any]:
    count = fields.integer("expert_count", 0)
    if not count:
        return {"enable_moe_block": False}
    return {
        "enable_moe_block": True,
        "num_experts": count,
        "top_k_experts": fields.integer("expert_used_count"),
        "moe_intermediate_size": fields.integer("expert_feed_forward_length"),
        "fused_experts": fields.has_tensor("blk.0.ffn_gate_up_exps.weight"),
    }
