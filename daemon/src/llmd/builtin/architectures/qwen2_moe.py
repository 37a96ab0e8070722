"""Qwen2-MoE: Qwen2 with mixtures of experts, and a gated expert that all rows share."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import (
    MAX_EXPERTS,
    Mixture,
    SharedExpert,
    read_top_k,
    shared_expert,
)
from llmd.builtin.architectures.qwen2 import qwen_windows
from llmd.builtin.architectures.shape import read_shape


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Qwen Team 2024, "Qwen1.5-MoE"; Yang et al. 2024, "Qwen2 Technical Report"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qkv_bias=fields.flag("qkv_bias", default=True),
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    windows = qwen_windows(fields, shape.num_layers)
    width = fields.size("shared_expert_intermediate_size")
    shared = shared_expert("mlp.shared_expert", width, "mlp.shared_expert_gate")
    mixtures = qwen_mixtures(fields, shape.num_layers, shared)
    return plan_with_one_rope(Family("qwen2_moe", shape, style, ends, windows, mixtures), fields, context_len)


def qwen_mixtures(
    fields: ConfigFields, num_layers: int, shared: SharedExpert | None = None
) -> tuple[Mixture | None, ...]:
    """Return the mixture of each layer: of every ``decoder_sparse_step``-th, but not ``mlp_only_layers``."""
    count = fields.size("num_experts", at_most=MAX_EXPERTS)
    step = fields.size("decoder_sparse_step", 1)
    dense = fields.indices("mlp_only_layers", num_layers)
    mixture = Mixture(
        count,
        fields.size("moe_intermediate_size"),
        read_top_k(fields, count),
        normalized=fields.flag("norm_topk_prob", default=False),
        shared=shared,
    )
    return tuple(
        mixture if layer not in dense and (layer + 1) % step == 0 else None for layer in range(num_layers)
    )
