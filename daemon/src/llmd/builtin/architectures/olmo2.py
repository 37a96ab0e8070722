"""OLMo 2: norms after each part instead of before, and norms of queries and keys over all heads together."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import read_shape


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: OLMo Team 2024, "2 OLMo 2 Furious"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    bias = fields.flag("attention_bias", default=False)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        pre_norms=None,
        post_norms=("post_attention_layernorm", "post_feedforward_layernorm"),
        qk_norm="width",
        qkv_bias=bias,
        out_bias=bias,
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    family = Family("olmo2", shape, style, ends, (None,) * shape.num_layers)
    return plan_with_one_rope(family, fields, context_len)
