"""The keys of layers with the state space of Mamba-2, and the shapes of their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llmd.api.ops import Norm, Rope
from llmd.api.plan import ModelPlan, Part
from llmd.api.state_ops import StateSpace
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.metadata import Value
from llmd.models.space_names import GRANITE_HYBRID, MAMBA2, SpaceNames

MAX_LAYERS = 4096
STATE_POSITIONS = ("granitemoehybrid",)
"""Architectures whose files state whether attention has positions."""

FALCON_MULTIPLIERS: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "embedding_multiplier",
            "lm_head_multiplier",
            "attention_in_multiplier",
            "attention_out_multiplier",
            "key_multiplier",
            "ssm_in_multiplier",
            "ssm_out_multiplier",
        ),
        1.0,
    ),
    "mlp_multipliers": [1.0] * 2,
    "ssm_multipliers": [1.0] * 5,
}
"""The multipliers of Falcon-H1, as they are if weights have them."""


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


def falcon_h1_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields of Falcon-H1, without multipliers: files have them in their weights."""
    return state_spaces(fields, GRANITE_HYBRID) | {
        "mamba_d_ssm": fields.integer("ssm.inner_size"),
        "mamba_rms_norm": fields.has_tensor("blk.0.ssm_norm.weight"),
        "mamba_norm_before_gate": False,
    }


def space_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for a model without state spaces."""
    space = next((op for _, op in _spaces(plan)), None)
    if space is None:
        return {}
    return {
        "ssm.conv_kernel": space.taps,
        "ssm.state_size": space.state_size,
        "ssm.group_count": space.groups,
        "ssm.inner_size": space.heads * space.head_dim,
        "ssm.time_step_rank": space.heads,
        **({"rope.scaling.finetuned": _rotates(plan)} if plan.architecture in STATE_POSITIONS else {}),
    }


def space_shapes(plan: ModelPlan) -> Mapping[str, tuple[int, ...]]:
    """Return by name the shapes of tensors that are vectors in a plan and matrices in a file: a column for
    numbers of heads, and the weights of a norm below each other by group.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for part, space in _spaces(plan):
        shapes |= {ref.name: (space.heads, 1) for ref in (space.rates, space.skips)}
        norms = (op.weight for op in part.ops if isinstance(op, Norm) and op.x == space.out)
        inner = space.heads * space.head_dim
        shapes |= {ref.name: (space.groups, inner // space.groups) for ref in norms if ref is not None}
    return shapes


def _spaces(plan: ModelPlan) -> Iterator[tuple[Part, StateSpace]]:
    """Yield the parts with state spaces, and these."""
    return ((part, op) for part in plan.parts for op in part.ops if isinstance(op, StateSpace))


def _rotates(plan: ModelPlan) -> bool:
    """Whether attention has positions."""
    return any(isinstance(op, Rope) for part in plan.parts for op in part.ops)
