"""Gemma 2: soft caps, norms before and after each part, a sliding window in every other layer."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Family, plan_with_one_rope
from llmd.builtin.architectures.gemma import DEFAULT_HEAD_DIM, gemma_ends, gemma_style
from llmd.builtin.architectures.shape import read_shape
from llmd.builtin.architectures.windows import layer_windows, read_window

ATTENTION_SOFTCAP = 50.0
LOGIT_SOFTCAP = 30.0


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size"."""
    fields = ConfigFields(config)
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    style = gemma_style(fields, softcap=fields.positive_or_null("attn_logit_softcapping", ATTENTION_SOFTCAP))
    even = [layer % 2 == 0 for layer in range(shape.num_layers)]
    windows = layer_windows(fields, shape.num_layers, read_window(fields), even)
    family = Family("gemma2", shape, style, gemma_ends(fields, shape, softcap=LOGIT_SOFTCAP), windows)
    return plan_with_one_rope(family, fields, context_len)
