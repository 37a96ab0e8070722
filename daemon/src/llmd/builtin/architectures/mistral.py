"""Mistral: Llama's layers, with a sliding window if the configuration states one."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import read_shape
from llmd.builtin.architectures.windows import layer_windows, read_window


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Jiang et al. 2023, "Mistral 7B"."""
    fields = ConfigFields(config)
    return plan_with_one_rope(mistral_family(fields), fields, context_len)


def mistral_family(fields: ConfigFields) -> Family:
    """Return the family of a Mistral without experts."""
    shape = read_shape(fields)
    window = read_window(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        rope_interleave=fields.flag("rope_interleave", default=False),
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    windows = layer_windows(fields, shape.num_layers, window, [window is not None] * shape.num_layers)
    return Family("mistral", shape, style, ends, windows)
