"""Qwen3-MoE: Qwen3 with mixtures of experts."""

from __future__ import annotations

import msgspec

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import plan_with_one_rope
from llmd.builtin.architectures.qwen2_moe import qwen_mixtures
from llmd.builtin.architectures.qwen3 import qwen3_family


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Yang et al. 2025, "Qwen3 Technical Report"."""
    fields = ConfigFields(config)
    family = qwen3_family(fields)
    mixtures = qwen_mixtures(fields, family.shape.num_layers)
    mixed = msgspec.structs.replace(family, architecture="qwen3_moe", mixtures=mixtures)
    return plan_with_one_rope(mixed, fields, context_len)
