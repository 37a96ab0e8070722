"""Granite MoE: Granite with mixtures of experts, and perhaps an expert that all rows share."""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import plan_with_one_rope
from llmd.builtin.architectures.granite import granite_family
from llmd.builtin.architectures.mixture import (
    MAX_EXPERTS,
    ExpertNames,
    Mixture,
    SharedExpert,
    read_top_k,
    shared_expert,
)

GATE_UP = "block_sparse_moe.input_linear.weight"
FUSED = ExpertNames(
    "block_sparse_moe.router.layer.weight", GATE_UP, GATE_UP, "block_sparse_moe.output_linear.weight"
)


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Granite Team 2024, "Granite 3.0 Language Models"."""
    fields = ConfigFields(config)
    family = granite_family(fields)
    mixture = granite_mixture(fields, family.shape.intermediate_size)
    mixtures = (mixture,) * family.shape.num_layers
    mixed = msgspec.structs.replace(family, architecture="granitemoe", mixtures=mixtures)
    return plan_with_one_rope(mixed, fields, context_len)


def granite_mixture(fields: ConfigFields, inner: int) -> Mixture:
    """Return the mixture of a layer; ``inner`` is the width between the matrices of an expert.

    GGUF files have separate gates and up matrices, which the field ``fused_experts`` says.
    """
    is_fused = fields.flag("fused_experts", default=True)
    count = fields.size("num_local_experts", at_most=MAX_EXPERTS)
    width = fields.count("shared_intermediate_size", 0)
    gate_up, down = (f"shared_mlp.{name}_linear" for name in ("input", "output"))
    shared = SharedExpert(width, (gate_up, gate_up), down)
    if not is_fused:
        shared = shared_expert("mlp.shared_expert", width)
    return Mixture(
        count,
        inner,
        read_top_k(fields, count),
        FUSED if is_fused else ExpertNames(),
        shared=shared if width else None,
    )
