"""The keys of layers with the state space of Mamba-2."""

from __future__ import annotations

from typing import Any

import msgspec

from llmd.models.gguf.fields import GgufFields

MAX_LAYERS = 4096


class SpaceNames(msgspec.Struct, frozen=True):
    """What a family calls the sizes of its state spaces in ``config.json``."""

    heads: str
    head_dim: str
    groups: str
    state_size: str
    taps: str
    has_filter_bias: str
    has_bias: str


GRANITE_HYBRID = SpaceNames(
    "mamba_n_heads",
    "mamba_d_head",
    "mamba_n_groups",
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_conv_bias",
    "mamba_proj_bias",
)
NEMOTRON_H = SpaceNames(
    "mamba_num_heads",
    "mamba_head_dim",
    "n_groups",
    "ssm_state_size",
    "conv_kernel",
    "use_conv_bias",
    "use_bias",
)
MAMBA2 = SpaceNames(
    "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias", "use_bias"
)


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
