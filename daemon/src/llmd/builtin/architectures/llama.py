"""Llama 2, 3 and later; CodeLlama, TinyLlama, SmolLM and other models with Llama's class."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_gate
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import read_shape


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Pre-norm, grouped-query attention with RoPE, SwiGLU. Source: Touvron et al. 2023, "Llama 2"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    attention_bias = fields.flag("attention_bias", default=False)
    activation, threshold = read_gate(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=activation,
        threshold=threshold,
        scale=shape.head_dim**-0.5,
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        mlp_bias=fields.flag("mlp_bias", default=False),
        rope_interleave=fields.flag("rope_interleave", default=False),
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    family = Family("llama", shape, style, ends, (None,) * shape.num_layers)
    return plan_with_one_rope(family, fields, context_len)
