"""Qwen2-MoE: Qwen2 with mixtures of experts, and a gated expert that all rows share."""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import plan_with_one_rope
from llmd.builtin.architectures.mixture import (
    MAX_EXPERTS,
    Mixture,
    SharedExpert,
    read_top_k,
    shared_expert,
)
from llmd.builtin.architectures.qwen2 import qwen2_family


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Qwen Team 2024, "Qwen1.5-MoE"; Yang et al. 2024, "Qwen2 Technical Report"."""
    fields = ConfigFields(config)
    family = qwen2_family(fields)
    style = msgspec.structs.replace(family.style, qkv_bias=fields.flag("qkv_bias", default=True))
    width = fields.size("shared_expert_intermediate_size")
    shared = shared_expert("mlp.shared_expert", width, "mlp.shared_expert_gate")
    mixtures = qwen_mixtures(fields, family.shape.num_layers, shared)
    mixed = msgspec.structs.replace(family, architecture="qwen2_moe", style=style, mixtures=mixtures)
    return plan_with_one_rope(mixed, fields, context_len)


def qwen_mixtures(
    fields: ConfigFields, num_layers: int, shared: SharedExpert | None = None, *, normalized: bool = False
) -> tuple[Mixture | None, ...]:
    """Return the mixture of each layer: of every ``decoder_sparse_step``-th, but not ``mlp_only_layers``.

    ``normalized`` is the default of ``norm_topk_prob``.
    """
    count = fields.size("num_experts", at_most=MAX_EXPERTS)
    step = fields.size("decoder_sparse_step", 1)
    dense = fields.indices("mlp_only_layers", num_layers)
    mixture = Mixture(
        count,
        fields.size("moe_intermediate_size"),
        read_top_k(fields, count),
        normalized=fields.flag("norm_topk_prob", default=normalized),
        shared=shared,
    )
    return tuple(
        mixture if layer not in dense and (layer + 1) % step == 0 else None for layer in range(num_layers)
    )
