"""Phi-3, Phi-4 and Phi-4-mini: fused projections, long context with longrope, partial rotation."""

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
    """Source: Abdin et al. 2024, "Phi-3 Technical Report"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    window = read_window(fields, absent=None)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        fused_qkv=True,
        gate_up="fused",
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    windows = layer_windows(fields, shape.num_layers, window, [window is not None] * shape.num_layers)
    return plan_with_one_rope(Family("phi3", shape, style, ends, windows), fields, context_len)
