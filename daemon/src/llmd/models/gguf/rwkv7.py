"""The keys of RWKV-7."""

from __future__ import annotations

from typing import Any

from llmd.models.gguf.fields import GgufFields

SHIFTS = "token_shift_count"


def rwkv7_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only RWKV-7 has."""
    if (shifts := fields.integer(SHIFTS, 2)) != 2:
        raise fields.refuse(SHIFTS, shifts, "2: rows are mixed before both halves of a layer")
    return {
        "head_dim": fields.integer("wkv.head_size"),
        "decay_low_rank_dim": fields.integer("attention.decay_lora_rank"),
        "a_low_rank_dim": fields.integer("attention.iclr_lora_rank"),
        "v_low_rank_dim": fields.integer("attention.value_residual_mix_lora_rank"),
        "gate_low_rank_dim": fields.integer("attention.gate_lora_rank"),
        "norm_eps": fields.real("attention.layer_norm_epsilon"),
        "norm_bias": fields.has_tensor("blk.0.attn_norm.bias"),
        "norm_first": fields.has_tensor("token_embd_norm.weight"),
    }
