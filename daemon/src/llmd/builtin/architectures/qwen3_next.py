"""Qwen3-Next: layers of linear attention with the gated delta rule, some of full attention with output gates,
and mixtures of experts.
"""

from __future__ import annotations

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.delta_net import read_delta_net
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import Mixture, shared_expert
from llmd.builtin.architectures.qwen2_moe import qwen_mixtures
from llmd.builtin.architectures.shape import read_shape

DEFAULT_HEAD_DIM = 256
ROTATED = 0.25
"""The share of a head that is rotated, unless the configuration says otherwise."""
LAYER_TYPES = ("linear_attention", "full_attention")
INTERVAL = 4
"""Every how many layers attention is full, unless the configuration says otherwise."""
MTP = LeftOut("a draft head", ("mtp.",))


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Qwen Team 2025, "Qwen3-Next: Towards Ultimate Training & Inference Efficiency"."""
    fields = ConfigFields({"partial_rotary_factor": ROTATED, **config})
    family = hybrid_family(fields, fused=True)
    mixtures = hybrid_mixtures(fields, family.shape.num_layers)
    mixed = msgspec.structs.replace(family, architecture="qwen3_next", mixtures=mixtures)
    return hybrid_plan(mixed, fields, context_len)


def hybrid_plan(family: Family, fields: ConfigFields, context_len: int | None) -> ModelPlan:
    """Plan the model without its draft head."""
    layers = family.shape.num_layers
    draft = LeftOut(MTP.what, (*MTP.marks, f"blk.{layers}."), is_draft=True)
    return msgspec.structs.replace(plan_with_one_rope(family, fields, context_len), left_out=(draft,))


def hybrid_family(fields: ConfigFields, *, fused: bool) -> Family:
    """Return the family of a hybrid without experts; ``fused`` as in `read_delta_net`."""
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    bias = fields.flag("attention_bias", default=False)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qk_norm="head",
        norm_offset=1.0,
        qkv_bias=bias,
        out_bias=bias,
        out_gate=True,
    )
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    net = read_delta_net(fields, fused=fused)
    states = tuple(net if is_linear else None for is_linear in _linear_layers(fields, shape.num_layers))
    return Family("qwen3_next", shape, style, ends, (None,) * shape.num_layers, states=states)


def hybrid_mixtures(fields: ConfigFields, num_layers: int) -> tuple[Mixture | None, ...]:
    """Return the mixture of each layer, with a gated expert that all rows share."""
    width = fields.size("shared_expert_intermediate_size", 512)
    shared = shared_expert("mlp.shared_expert", width, "mlp.shared_expert_gate")
    return qwen_mixtures(fields, num_layers, shared, normalized=True)


def _linear_layers(fields: ConfigFields, num_layers: int) -> list[bool]:
    if "layer_types" in fields:
        return [name == LAYER_TYPES[0] for name in fields.names("layer_types", num_layers, LAYER_TYPES)]
    interval = fields.size("full_attention_interval", INTERVAL)
    return [(layer + 1) % interval != 0 for layer in range(num_layers)]
