"""The keys of Gemma 4, many of which differ between layers of full and of windowed attention.

Source: ``convert_hf_to_gguf.py`` and ``src/models/gemma4.cpp`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from llmd.api.ops import Attention, Embed, Linear
from llmd.api.plan import ModelPlan
from llmd.models.gguf.fields import PATTERN, WINDOW, GgufFields
from llmd.models.gguf.metadata import Value

GEMMA4 = "gemma4"
"""The architecture of plans, and of files."""
FULL, LOCAL = "full_attention", "sliding_attention"
ROPE_PART = 0.25
"""Of a head in layers of full attention, in files without the tensor that says so."""


def gemma4_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only this family has, or whose values differ between layers.

    Raises:
        CheckpointError: a key is missing, has the wrong type, or has values for another number of layers.
    """
    num_layers = fields.integer("block_count")
    sliding = [bool(one) for one in fields.each(PATTERN, num_layers)]
    num_shared = fields.integer("attention.shared_kv_layers", 0)
    return {
        **_heads(fields, sliding),
        "layer_types": [LOCAL if one else FULL for one in sliding],
        "num_kv_shared_layers": num_shared,
        "use_double_wide_mlp": _widens(fields.each("feed_forward_length", num_layers), num_shared),
        "attention_bias": fields.has_tensor("blk.0.attn_q.bias"),
        "hidden_size_per_layer_input": fields.integer("embedding_length_per_layer_input", 0),
        "sliding_window": fields.integer(WINDOW),
        "final_logit_softcapping": fields.real("final_logit_softcapping", None),
        "rope_parameters": _ropes(fields),
        **_experts(fields),
    }


def _heads(fields: GgufFields, sliding: Sequence[bool]) -> dict[str, Any]:
    """Return the sizes of heads, by layer if those of a kind differ in a way that no other field can say."""
    kv_heads = fields.each("attention.head_count_kv", len(sliding))
    full_dim, local_dim = (fields.integer(f"attention.key_length{end}") for end in ("", "_swa"))
    of_kind = [
        {n for n, slides in zip(kv_heads, sliding, strict=True) if slides is one} for one in (False, True)
    ]
    full, local = (next(iter(some), kv_heads[0]) for some in of_kind)
    num_shared = fields.integer("attention.shared_kv_layers", 0)
    value_is_key = _value_is_key(fields, sliding[: len(sliding) - num_shared])
    found = {
        "head_dim": local_dim,
        "global_head_dim": full_dim,
        "num_key_value_heads": local,
        "attention_k_eq_v": value_is_key,
        "num_global_key_value_heads": full if value_is_key else None,
    }
    if max(map(len, of_kind)) <= 1 and (value_is_key or full == local):
        return found
    return found | {
        "per_layer_config": {
            str(layer): {"head_dim": local_dim if slides else full_dim, "num_key_value_heads": heads}
            for layer, (slides, heads) in enumerate(zip(sliding, kv_heads, strict=True))
        }
    }


def _widens(widths: Sequence[int], num_shared: int) -> bool:
    """Return whether layers that read the keys of others have feed-forward networks of twice the width."""
    return num_shared > 0 and widths[-1] == 2 * widths[0]


def _value_is_key(fields: GgufFields, sliding: Sequence[bool]) -> bool:
    full = next((layer for layer, slides in enumerate(sliding) if not slides), None)
    return full is not None and not fields.has_tensor(f"blk.{full}.attn_v.weight")


def _ropes(fields: GgufFields) -> dict[str, Any]:
    return {
        FULL: {
            "rope_type": "proportional",
            "partial_rotary_factor": ROPE_PART,
            "rope_theta": fields.real("rope.freq_base", 1000000.0),
        },
        LOCAL: {"rope_type": "default", "rope_theta": fields.real("rope.freq_base_swa", 10000.0)},
    }


def _experts(fields: GgufFields) -> dict[str, Any]:
    count = fields.integer("expert_count", 0)
    if not count:
        return {"enable_moe_block": False}
    return {
        "enable_moe_block": True,
        "num_experts": count,
        "top_k_experts": fields.integer("expert_used_count"),
        "moe_intermediate_size": fields.integer("expert_feed_forward_length"),
        "fused_experts": fields.has_tensor("blk.0.ffn_gate_up_exps.weight"),
    }


def gemma4_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for other models."""
    if plan.architecture != GEMMA4:
        return {}
    attentions = [op for part in plan.parts for op in part.ops if isinstance(op, Attention)]
    windowed = {group.id for group in plan.groups if group.window is not None}
    full, local = ([op for op in attentions if (op.group in windowed) is slides] for slides in (False, True))
    dims = {"": full[0].head_dim, "_swa": (local or full)[0].head_dim}
    return {
        **{f"attention.{side}_length{end}": dim for side in ("key", "value") for end, dim in dims.items()},
        "attention.head_count_kv": _each([op.kv_heads for op in attentions]),
        "attention.shared_kv_layers": sum(op.k is None for op in attentions),
        "feed_forward_length": _each(list(_widths(plan))),
        "embedding_length_per_layer_input": _input_width(plan),
        PATTERN: np.array([op.group in windowed for op in attentions]),
    }


def _each(values: list[int]) -> Value:
    """Return the number of all layers, or that of each."""
    return values[0] if len(set(values)) == 1 else np.array(values, np.uint32)


def _widths(plan: ModelPlan) -> Iterator[int]:
    """Yield the width of the feed-forward network of each layer."""
    for part in plan.parts:
        if part.kind == "ffn":
            yield next(op for op in part.ops if isinstance(op, Linear)).weights[0].view_shape[0]


def _input_width(plan: ModelPlan) -> int:
    """Return the elements of what a layer looks up for each token; 0 if layers look up nothing."""
    tables = (op.columns for part in plan.parts for op in part.ops if isinstance(op, Embed))
    return next((columns[1] - columns[0] for columns in tables if columns is not None), 0)
