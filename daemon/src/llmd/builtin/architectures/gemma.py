"""Shared parts of the Gemma families."""

from __future__ import annotations

import math
from typing import Literal

from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import Shape

DEFAULT_HEAD_DIM = 256
DEFAULT_ATTENTION_SCALAR = 256.0


def gemma_style(
    fields: ConfigFields, *, softcap: float | None = None, qk_norm: Literal["head"] | None = None
) -> LayerStyle:
    """Return the style: norms before and after each part, stored minus 1, and a configured score scale."""
    if fields.flag("use_bidirectional_attention", default=False):
        fields.refuse_unsupported("use_bidirectional_attention", value=True, known="false")
    bias = fields.flag("attention_bias", default=False)
    return LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields, "hidden_activation", "gelu_pytorch_tanh"),
        scale=fields.positive("query_pre_attn_scalar", DEFAULT_ATTENTION_SCALAR) ** -0.5,
        pre_norms=("input_layernorm", "pre_feedforward_layernorm"),
        post_norms=("post_attention_layernorm", "post_feedforward_layernorm"),
        norm_offset=1.0,
        qk_norm=qk_norm,
        qkv_bias=bias,
        out_bias=bias,
        softcap=softcap,
    )


def gemma_ends(fields: ConfigFields, shape: Shape, *, softcap: float | None) -> Ends:
    """Return the ends: the embedding is scaled by the square root of its width, and usually tied to the head.

    ``softcap`` is used if ``final_logit_softcapping`` is missing; null means no cap.
    """
    return Ends(
        tied=fields.flag("tie_word_embeddings", default=True),
        embed_scale=math.sqrt(shape.hidden_size),
        head_softcap=fields.positive_or_null("final_logit_softcapping", softcap),
    )
