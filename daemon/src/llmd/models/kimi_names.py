"""What the configuration of Kimi Linear calls fields of DeepSeek-V3."""

from __future__ import annotations

from collections.abc import Mapping

KIMI_NAMES: Mapping[str, str] = {
    "max_position_embeddings": "model_max_length",
    "norm_topk_prob": "moe_renormalize",
    "n_group": "num_expert_group",
    "n_routed_experts": "num_experts",
    "num_experts_per_tok": "num_experts_per_token",
    "n_shared_experts": "num_shared_experts",
}
"""Its names, by those of DeepSeek-V3."""
