"""DeepSeek-V3.2: DeepSeek-V3 with attention that is limited to the positions that an indexer chooses."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import num_dense, sparse_plan
from llmd.builtin.architectures.deepseek_v3 import DEFAULTS
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models"."""
    fields = ConfigFields({**DEFAULTS, "index_n_heads": 64, **config})
    dense = num_dense(fields, 3)
    return sparse_plan("deepseek_v32", fields, sigmoid_mixture(fields), dense, context_len, interleaved=False)
