"""Granite 4: layers with the state space of Mamba-2, some of attention, and Granite's multipliers; some
models have mixtures of experts.
"""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Family, plan_with_one_rope, plan_without_rope
from llmd.builtin.architectures.granite import granite_family
from llmd.builtin.architectures.granite_moe import granite_mixture
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mamba import read_mamba
from llmd.models.space_names import GRANITE_HYBRID

LAYER_TYPES = ("mamba", "attention", "linear_attention", "full_attention")
"""The names before and since transformers 5."""
STATES = ("mamba", "linear_attention")
POSITIONS = {"rope": True, "nope": False}
SHARED = Modules(feed_forward="shared_mlp", gate_up="input_linear", down="output_linear")


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: IBM 2025, "Granite 4.0 Language Models". Without experts, the shared expert is the network."""
    fields = ConfigFields(config)
    family = _with_states(granite_family(fields), fields)
    if fields.count("num_local_experts", 0):
        mixture = granite_mixture(fields, family.shape.intermediate_size)
        family = msgspec.structs.replace(family, mixtures=(mixture,) * family.shape.num_layers)
    else:
        family = _dense(family, fields)
    has_rope = fields.choice("position_embedding_type", POSITIONS, "nope")
    return (plan_with_one_rope if has_rope else plan_without_rope)(family, fields, context_len)


def _with_states(family: Family, fields: ConfigFields) -> Family:
    layers = family.shape.num_layers
    types = (
        fields.names("layer_types", layers, LAYER_TYPES) if "layer_types" in fields else ["mamba"] * layers
    )
    inner = fields.size("mamba_expand", 2) * family.shape.hidden_size
    mamba = read_mamba(fields, GRANITE_HYBRID, "mamba", inner=inner)
    states = tuple(mamba if name in STATES else None for name in types)
    return msgspec.structs.replace(family, architecture="granitemoehybrid", states=states)


def _dense(family: Family, fields: ConfigFields) -> Family:
    width = fields.size("shared_intermediate_size", 1024)
    shape = msgspec.structs.replace(family.shape, intermediate_size=width)
    style: LayerStyle = family.style
    if fields.flag("fused_experts", default=True):
        style = msgspec.structs.replace(style, gate_up="fused", modules=SHARED)
    return msgspec.structs.replace(family, shape=shape, style=style)
