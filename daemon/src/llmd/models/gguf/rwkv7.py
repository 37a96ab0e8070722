"""The keys of RWKV-7, and what is particular about its tensors.

Source: ``conversion/rwkv.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api.ops import Gate, Glu, Linear
from llmd.api.plan import ModelPlan, Part
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.metadata import Value

RWKV7 = "rwkv7"
"""The architecture of plans, and of files."""
SHIFTS = "token_shift_count"
RANKS: Mapping[str, str] = {
    "decay": "attention.decay_lora_rank",
    "a": "attention.iclr_lora_rank",
    "v": "attention.value_residual_mix_lora_rank",
    "gate": "attention.gate_lora_rank",
}
"""Keys of the ranks of products of two matrices, by what they compute."""
UNREAD: Mapping[str, str] = {f"blk.0.time_mix_v{n}.weight": f"blk.0.time_mix_a{n}.weight" for n in range(3)}
"""Tensors of the first layer that llama.cpp demands and never reads, and those whose shapes they have."""


def rwkv7_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only RWKV-7 has."""
    if (shifts := fields.integer(SHIFTS, 2)) != 2:
        raise fields.refuse(SHIFTS, shifts, "2: rows are mixed before both halves of a layer")
    return {
        "head_dim": fields.integer("wkv.head_size"),
        **{f"{value}_low_rank_dim": fields.integer(key) for value, key in RANKS.items()},
        "norm_eps": fields.real("attention.layer_norm_epsilon"),
        "norm_bias": fields.has_tensor("blk.0.attn_norm.bias"),
        "norm_first": fields.has_tensor("token_embd_norm.weight"),
    }


def rwkv7_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for other models."""
    layers = [part for part in plan.parts if any(isinstance(op, GeneralizedDelta) for op in part.ops)]
    if not layers:
        return {}
    last = layers[-1]
    (delta,) = (op for op in last.ops if isinstance(op, GeneralizedDelta))
    gate = next(op.gate for op in last.ops if isinstance(op, Glu))
    shares = (op.gate for op in last.ops if isinstance(op, Gate))
    values = {"decay": delta.decay, "a": delta.a, "v": next(shares, delta.a), "gate": gate}
    return {
        "wkv.head_size": delta.head_dim,
        **{RANKS[value]: _inputs_of(last, name) for value, name in values.items()},
    }


def _inputs_of(part: Part, value: str) -> int:
    """Return the inputs of the matrix that computes a value."""
    makers = (op for op in part.ops if isinstance(op, Linear) and value in op.outs)
    return next(op.weights[0].view_shape[-1] for op in makers)


def rwkv7_shapes(plan: ModelPlan) -> Mapping[str, tuple[int, ...]]:
    """Return by name the shapes of tensors with the shares of all mixes of a layer, in a plan of a file."""
    return {shift.shares[0].name: (len(shift.shares), 1, 1, shift.state_elements) for shift in _shifts(plan)}


def _shifts(plan: ModelPlan) -> Iterator[TokenShift]:
    ops = (op for part in plan.parts for op in part.ops)
    return (op for op in ops if isinstance(op, TokenShift) and len(op.shares) > 1)


def unread_tensors(plan: ModelPlan) -> dict[str, NDArray[np.float32]]:
    """Return zeros for the tensors that nothing reads, by their names in a file; none for other models."""
    if plan.architecture != RWKV7:
        return {}
    shapes = {ref.name: ref.shape for ref in plan.tensor_refs()}
    return {name: np.zeros(shapes[like], np.float32) for name, like in UNREAD.items()}
