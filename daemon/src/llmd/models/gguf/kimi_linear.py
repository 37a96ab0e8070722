"""The keys of Kimi Linear."""

from __future__ import annotations

from typing import Any

from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.mixtures import deepseek2_fields, sigmoid_experts
from llmd.models.gguf.state_spaces import having_tensor


def kimi_linear_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only Kimi Linear has; files do not state that weights of experts are
    normalised.
    """
    linear = having_tensor(fields, "ssm_a")
    norm = fields.flags("expert_weights_norm")
    return (
        sigmoid_experts(fields)
        | deepseek2_fields(fields)
        | {
            "norm_topk_prob": norm is None or bool(norm),
            "split_kv_b": any(fields.has_tensor(f"blk.{n}.attn_k_b.weight") for n in range(len(linear))),
            "layer_types": ["linear_attention" if one else "full_attention" for one in linear],
            "linear_attn_config": {
                "head_dim": fields.integer("kda.head_dim"),
                "num_heads": fields.integer("attention.head_count"),
                "short_conv_kernel_size": fields.integer("ssm.conv_kernel"),
            },
        }
    )
