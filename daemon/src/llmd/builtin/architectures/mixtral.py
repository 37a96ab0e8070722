"""Mixtral: Mistral with a mixture of experts in every layer."""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import plan_with_one_rope
from llmd.builtin.architectures.mistral import mistral_family
from llmd.builtin.architectures.mixture import MAX_EXPERTS, ExpertNames, Mixture, read_top_k

NAMES = ExpertNames(
    "block_sparse_moe.gate.weight",
    "block_sparse_moe.experts.*.w1.weight",
    "block_sparse_moe.experts.*.w3.weight",
    "block_sparse_moe.experts.*.w2.weight",
)


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Jiang et al. 2024, "Mixtral of Experts"."""
    fields = ConfigFields(config)
    family = mistral_family(fields)
    count = fields.size("num_local_experts", at_most=MAX_EXPERTS)
    mixture = Mixture(count, family.shape.intermediate_size, read_top_k(fields, count), NAMES)
    mixtures = (mixture,) * family.shape.num_layers
    mixed = msgspec.structs.replace(family, architecture="mixtral", mixtures=mixtures)
    return plan_with_one_rope(mixed, fields, context_len)
