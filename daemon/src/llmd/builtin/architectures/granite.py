"""Granite: Llama with multipliers on embedding, attention scores, residual branches and logits."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import read_shape


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Granite Team 2024, "Granite 3.0 Language Models"."""
    fields = ConfigFields(config)
    return plan_with_one_rope(granite_family(fields), fields, context_len)


def granite_family(fields: ConfigFields) -> Family:
    """Return the family of a Granite without experts."""
    shape = read_shape(fields)
    attention_bias = fields.flag("attention_bias", default=False)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=fields.positive("attention_multiplier", 1.0),
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        mlp_bias=fields.flag("mlp_bias", default=False),
        rope_interleave=fields.flag("rope_interleave", default=False),
        residual_scale=fields.positive("residual_multiplier", 1.0),
    )
    ends = Ends(
        tied=fields.flag("tie_word_embeddings", default=False),
        embed_scale=fields.positive("embedding_multiplier", 1.0),
        head_scale=1.0 / fields.positive("logits_scaling", 1.0),
    )
    return Family("granite", shape, style, ends, (None,) * shape.num_layers)
