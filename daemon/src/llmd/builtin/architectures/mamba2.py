"""Mamba-2: layers with nothing but a state space."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, Half, plan_without_rope
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mamba import read_mamba
from llmd.builtin.architectures.shape import MAX_LAYERS, Shape
from llmd.models.space_names import MAMBA2


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Dao & Gu 2024, "Transformers are SSMs"."""
    fields = ConfigFields({"n_groups": 8, **config})
    hidden = fields.size("hidden_size")
    layers = fields.size("num_hidden_layers", at_most=MAX_LAYERS)
    inner = fields.size("expand", 2) * hidden
    mamba = read_mamba(fields, MAMBA2, "mixer", inner=inner)
    shape = Shape(hidden, inner, fields.size("vocab_size"), layers, mamba.heads, mamba.heads, mamba.head_dim)
    style = LayerStyle(
        eps=fields.positive("layer_norm_epsilon", 1e-5),
        activation=read_activation(fields),
        scale=1.0,
        pre_norms=("norm", "norm"),
        modules=Modules(layers="backbone.layers"),
    )
    ends = Ends(
        tied=fields.flag("tie_word_embeddings", default=False),
        embedding="backbone.embeddings.weight",
        norm="backbone.norm_f.weight",
    )
    half: Half = "mixer"
    family = Family(
        "mamba2",
        shape,
        style,
        ends,
        (None,) * layers,
        states=(mamba,) * layers,
        halves=(half,) * layers,
    )
    return plan_without_rope(family, fields, context_len)
