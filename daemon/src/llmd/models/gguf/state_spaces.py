"""The keys of layers with the state space of Mamba-2."""

from __future__ import annotations

from typing import Any

from llmd.models.gguf.fields import GgufFields
from llmd.models.space_names import MAMBA2, SpaceNames

MAX_LAYERS = 4096


def having_tensor(fields: GgufFields, name: str) -> list[bool]:
    """Return for each layer, without those of a draft head, whether it has the tensor."""
    layers = fields.integer("block_count") - fields.integer("nextn_predict_layers", 0)
    return [fields.has_tensor(f"blk.{layer}.{name}") for layer in range(min(layers, MAX_LAYERS))]


def state_spaces(fields: GgufFields, names: SpaceNames) -> dict[str, Any]:
    """Return the fields of layers with state spaces, which the first layer that has one speaks for."""
    heads = fields.integer("ssm.time_step_rank")
    having = having_tensor(fields, "ssm_in.weight")
    first = having.index(True) if True in having else 0
    return {
        names.heads: heads,
        names.head_dim: fields.integer("ssm.inner_size") // max(1, heads),
        names.groups: fields.integer("ssm.group_count"),
        names.state_size: fields.integer("ssm.state_size"),
        names.taps: fields.integer("ssm.conv_kernel"),
        names.has_filter_bias: fields.has_tensor(f"blk.{first}.ssm_conv1d.bias"),
        names.has_bias: fields.has_tensor(f"blk.{first}.ssm_in.bias"),
    }


def mamba2_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only models of Mamba-2 have."""
    inner, hidden = fields.integer("ssm.inner_size"), fields.integer("embedding_length")
    return state_spaces(fields, MAMBA2) | {
        "expand": inner // max(1, hidden),
        "layer_norm_epsilon": fields.real("attention.layer_norm_rms_epsilon"),
    }
