"""GLM-4.5 to GLM-4.7: sigmoid routers with corrections and groups, and an expert that all rows share."""

from __future__ import annotations

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import (
    MAX_EXPERTS,
    ExpertNames,
    Mixture,
    read_top_k,
    shared_expert,
)
from llmd.builtin.architectures.shape import read_shape

NAMES = ExpertNames(correction="mlp.gate.e_score_correction_bias")


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: GLM-4.5 Team 2025, "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        qk_norm="head" if fields.flag("use_qk_norm", default=False) else None,
        qkv_bias=fields.flag("attention_bias", default=False),
    )
    layers = shape.num_layers
    dense = fields.count("first_k_dense_replace", 1)
    mixture = sigmoid_mixture(fields)
    mixtures = tuple(mixture if layer >= dense else None for layer in range(layers))
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    family = Family("glm4_moe", shape, style, ends, (None,) * layers, mixtures)
    draft = LeftOut("a draft head", (f"model.layers.{layers}.", f"blk.{layers}."), is_draft=True)
    return msgspec.structs.replace(plan_with_one_rope(family, fields, context_len), left_out=(draft,))


def sigmoid_mixture(fields: ConfigFields) -> Mixture:
    """Return a mixture as DeepSeek-V3 introduced it, from the fields of its configuration."""
    count = fields.size("n_routed_experts", at_most=MAX_EXPERTS)
    groups, top_groups = fields.size("n_group", 1), fields.size("topk_group", 1)
    if count % groups or top_groups > groups:
        fields.contradict(f"{count} experts cannot be in {groups} groups, of which {top_groups} are used")
    inner = fields.size("moe_intermediate_size")
    shared = shared_expert("mlp.shared_experts", inner * fields.size("n_shared_experts"))
    return Mixture(
        count,
        inner,
        read_top_k(fields, count),
        NAMES,
        "sigmoid",
        normalized=fields.flag("norm_topk_prob", default=True),
        factor=fields.positive("routed_scaling_factor", 1.0),
        groups=groups,
        top_groups=top_groups,
        shared=shared,
    )
