"""GLM-4.7-Flash: the layers of DeepSeek-V3 in another size."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan, num_dense
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: the configuration of GLM-4.7-Flash."""
    fields = ConfigFields({"routed_scaling_factor": 1.8, **config})
    return latent_plan("glm4_moe_lite", fields, sigmoid_mixture(fields), num_dense(fields, 1), context_len)
