"""DeepSeek-V3 and R1: latent attention, and mixtures with sigmoid routers and groups."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture

DEFAULTS = {"n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5}


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report"."""
    fields = ConfigFields({**DEFAULTS, **config})
    dense = fields.count("first_k_dense_replace", 3)
    return latent_plan("deepseek_v3", fields, sigmoid_mixture(fields), dense, context_len)
