"""Qwen3.5 to Qwen3.8: Qwen3-Next's layers, dense or with mixtures of experts, below a vision tower."""

from __future__ import annotations

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.mixture import ExpertNames
from llmd.builtin.architectures.qwen3_next import ROTATED, hybrid_family, hybrid_mixtures, hybrid_plan

VISION = LeftOut("vision", ("model.visual.", "visual."))
GATE_UP = "mlp.experts.gate_up_proj"
FUSED = ExpertNames(gate=GATE_UP, up=GATE_UP, down="mlp.experts.down_proj")


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Qwen Team 2026, "Qwen3.5". Text has the same position in all axes of its RoPE."""
    text = config.get("text_config") or config
    # Only dense models state the width of feed-forward networks.
    defaults = {"partial_rotary_factor": ROTATED, "intermediate_size": text.get("moe_intermediate_size")}
    fields = ConfigFields({**defaults, **text})
    family = msgspec.structs.replace(hybrid_family(fields, fused=False), architecture="qwen3_5")
    if "num_experts" in fields:
        names = FUSED if fields.flag("fused_experts", default=True) else ExpertNames()
        mixtures = hybrid_mixtures(fields, family.shape.num_layers)
        named = tuple(one and msgspec.structs.replace(one, names=names) for one in mixtures)
        family = msgspec.structs.replace(family, architecture="qwen3_5_moe", mixtures=named)
    whole = hybrid_plan(family, fields, context_len)
    return msgspec.structs.replace(whole, left_out=(VISION, *whole.left_out))
