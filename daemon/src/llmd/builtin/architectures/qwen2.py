"""Qwen2 and Qwen2.5: biases on queries, keys and values; an optional sliding window in the upper layers."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import read_shape
from llmd.builtin.architectures.windows import Windows, layer_windows, read_window

DEFAULT_FIRST_WINDOWED = 28


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Yang et al. 2024, "Qwen2 Technical Report"."""
    fields = ConfigFields(config)
    return plan_with_one_rope(qwen2_family(fields), fields, context_len)


def qwen2_family(fields: ConfigFields) -> Family:
    """Return the family of a Qwen2 without experts."""
    shape = read_shape(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qkv_bias=True,
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    return Family("qwen2", shape, style, ends, qwen_windows(fields, shape.num_layers))


def qwen_windows(fields: ConfigFields, num_layers: int) -> Windows:
    """Return the windows: only with ``use_sliding_window``, and from layer ``max_window_layers`` on."""
    used = fields.flag("use_sliding_window", default=False)
    window = read_window(fields) if used else None
    first = fields.count("max_window_layers", DEFAULT_FIRST_WINDOWED)
    sliding = [window is not None and layer >= first for layer in range(num_layers)]
    return layer_windows(fields, num_layers, window, sliding)
