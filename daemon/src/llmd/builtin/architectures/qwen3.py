"""Qwen3: queries and keys are normalised per head; the head dimension is independent of hidden size."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.qwen2 import qwen_windows
from llmd.builtin.architectures.shape import read_shape

DEFAULT_HEAD_DIM = 128


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Yang et al. 2025, "Qwen3 Technical Report"."""
    fields = ConfigFields(config)
    return plan_with_one_rope(qwen3_family(fields), fields, context_len)


def qwen3_family(fields: ConfigFields) -> Family:
    """Return the family of a Qwen3 without experts."""
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    bias = fields.flag("attention_bias", default=False)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qk_norm="head",
        qkv_bias=bias,
        out_bias=bias,
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    return Family("qwen3", shape, style, ends, qwen_windows(fields, shape.num_layers))
