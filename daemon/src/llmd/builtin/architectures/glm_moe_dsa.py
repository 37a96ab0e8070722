"""GLM-5, 5.1 and 5.2: the layers of DeepSeek-V3.2 in other sizes.

In GLM-5.2, most layers use the positions that an earlier one chose.
"""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import num_dense, sparse_plan
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture

DEFAULTS = {"routed_scaling_factor": 2.5, "index_n_heads": 32}


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: the configurations of GLM-5 and GLM-5.2."""
    fields = ConfigFields({**DEFAULTS, **config})
    dense = num_dense(fields, 3)
    return sparse_plan("glm_moe_dsa", fields, sigmoid_mixture(fields), dense, context_len, interleaved=True)
