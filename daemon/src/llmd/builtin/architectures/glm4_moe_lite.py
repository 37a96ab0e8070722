"""GLM-4.7-Flash: the layers of DeepSeek-V3 in another size."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture
from llmd.builtin.architectures.shape import MAX_LAYERS

LAYER_TYPES = ("dense", "sparse")


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: the configuration of GLM-4.7-Flash."""
    fields = ConfigFields({"routed_scaling_factor": 1.8, **config})
    return latent_plan("glm4_moe_lite", fields, sigmoid_mixture(fields), _dense(fields), context_len)


def _dense(fields: ConfigFields) -> int:
    """Return the number of layers without experts, which must be the first ones."""
    if "mlp_layer_types" not in fields:
        return fields.count("first_k_dense_replace", 1)
    layers = fields.size("num_hidden_layers", at_most=MAX_LAYERS)
    types = fields.names("mlp_layer_types", layers, LAYER_TYPES)
    if types != sorted(types):
        fields.contradict("mlp_layer_types has a dense layer after a sparse one")
    return types.count(LAYER_TYPES[0])
