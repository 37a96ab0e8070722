"""Make the GGUF keys for the width between the matrices of feed-forward networks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llmd.api.expert_ops import Experts
from llmd.api.ops import Glu, Linear
from llmd.api.plan import ModelPlan, Part
from llmd.api.plugins import Config
from llmd.models.gguf.deepseek4 import DEEPSEEK_V4
from llmd.models.gguf.layer_keys import has_experts
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.rwkv7 import RWKV7

KEY = "feed_forward_length"
EXPERTS_ONLY = (DEEPSEEK_V4,)
"""Architectures whose layers have no other networks than experts, whose width another key states."""
ONE_HALF = ("nemotron_h", "mamba2")
"""Architectures whose layers may have no feed-forward network. Their files state the width for each layer,
or 0 if none has one.
"""


def inner_sizes(plan: ModelPlan, config: Config) -> dict[str, Value]:
    """Return the width, or that of each layer; none if a mixture does not state it.

    ``config`` describes the text model. The plan of a mixture may have no feed-forward network whose width it
    could show.
    """
    if plan.architecture == RWKV7:
        return {KEY: next(_width(part) for part in plan.parts if part.kind == "mixer")}
    if plan.architecture in ONE_HALF:
        widths = {part.layer: _width(part) for part in plan.parts if part.kind == "ffn"}
        each = [widths.get(layer, 0) for layer in range(plan.num_layers)]
        return {KEY: np.array(each, np.uint32) if widths else 0}
    if plan.architecture in EXPERTS_ONLY:
        return {}
    if has_experts(plan):
        stated = config.get("intermediate_size")
        return {KEY: stated} if stated else {}
    return {KEY: next(_gate_widths(plan))}


def _gate_widths(plan: ModelPlan) -> Iterator[int]:
    gates = {op.gate for part in plan.parts if part.kind == "ffn" for op in part.ops if isinstance(op, Glu)}
    return (
        weight.view_shape[0]
        for part in plan.parts
        for op in part.ops
        if isinstance(op, Linear)
        for out, weight in zip(op.outs, op.weights, strict=True)
        if out in gates
    )


def _width(part: Part) -> int:
    """Return the width of an expert, or of the last network."""
    experts = (op.down.view_shape[-1] for op in part.ops if isinstance(op, Experts))
    networks = (op.weights[0].view_shape[-1] for op in reversed(part.ops) if isinstance(op, Linear))
    return next(experts, 0) or next(networks)
