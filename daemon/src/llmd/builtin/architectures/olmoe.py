"""OLMoE: norms of queries and keys over their whole width, and a mixture of experts in every layer."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import MAX_EXPERTS, Mixture, read_top_k
from llmd.builtin.architectures.shape import read_shape


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    if "clip_qkv" in fields:
        fields.refuse_unsupported("clip_qkv", fields.positive("clip_qkv"), "null")
    bias = fields.flag("attention_bias", default=False)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qk_norm="width",
        qkv_bias=bias,
        out_bias=bias,
    )
    count = fields.size("num_experts", at_most=MAX_EXPERTS)
    mixture = Mixture(
        count,
        shape.intermediate_size,
        read_top_k(fields, count),
        normalized=fields.flag("norm_topk_prob", default=False),
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    layers = shape.num_layers
    family = Family("olmoe", shape, style, ends, (None,) * layers, (mixture,) * layers)
    return plan_with_one_rope(family, fields, context_len)
