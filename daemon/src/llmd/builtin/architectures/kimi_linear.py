"""Kimi Linear: layers of Kimi Delta Attention, some of latent attention without positions, and mixtures."""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_without_rope
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture
from llmd.builtin.architectures.kimi_delta import read_kimi_delta
from llmd.builtin.architectures.latent import read_latent
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import ExpertNames, Mixture, shared_expert
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, read_shape
from llmd.models.kimi_names import KIMI_NAMES

NAMES = ExpertNames(
    router="block_sparse_moe.gate.weight",
    gate="block_sparse_moe.experts.*.w1.weight",
    up="block_sparse_moe.experts.*.w3.weight",
    down="block_sparse_moe.experts.*.w2.weight",
    correction="block_sparse_moe.gate.e_score_correction_bias",
)
SHARED = "block_sparse_moe.shared_experts"


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Kimi Team 2025, "Kimi Linear: An Expressive, Efficient Attention Architecture"."""
    stated = {name: config[other] for name, other in KIMI_NAMES.items() if config.get(other) is not None}
    fields = ConfigFields({**config, **stated})
    _refuse_variants(fields)
    rotated = fields.size("qk_rope_head_dim", at_most=MAX_HEAD_DIM)
    shape = msgspec.structs.replace(read_shape(fields, default_head_dim=rotated), head_dim=rotated)
    latent, delta = read_latent(fields), read_kimi_delta(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=(latent.plain + rotated) ** -0.5,
    )
    dense, mixture = fields.count("first_k_dense_replace", 1), _mixture(fields)
    layers = range(shape.num_layers)
    family = Family(
        "kimi_linear",
        shape,
        style,
        Ends(tied=fields.flag("tie_word_embeddings", default=False)),
        (None,) * shape.num_layers,
        tuple(mixture if layer >= dense else None for layer in layers),
        states=tuple(delta if linear else None for linear in _linear_layers(fields, shape.num_layers)),
        latent=latent,
    )
    return plan_without_rope(family, fields, context_len)


def _refuse_variants(fields: ConfigFields) -> None:
    """Refuse what no published model has."""
    if not fields.flag("mla_use_nope", default=True):
        fields.refuse_unsupported("mla_use_nope", value=False, known="true: attention without positions")
    fields.choice("moe_router_activation_func", {"sigmoid": "sigmoid"}, "sigmoid")
    if (every := fields.size("moe_layer_freq", 1)) != 1:
        fields.refuse_unsupported("moe_layer_freq", every, "1")


def _mixture(fields: ConfigFields) -> Mixture:
    """Return the mixture of all layers that have one."""
    mixture = sigmoid_mixture(fields)
    shared = shared_expert(SHARED, mixture.inner * fields.size("n_shared_experts"))
    return msgspec.structs.replace(mixture, names=NAMES, shared=shared)


def _linear_layers(fields: ConfigFields, num_layers: int) -> list[bool]:
    """Return which layers have linear attention; configurations count layers from 1."""
    full = fields.inside("linear_attn_config").indices("full_attn_layers", num_layers + 1)
    return [layer + 1 not in full for layer in range(num_layers)]
