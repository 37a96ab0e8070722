"""The keys of Kimi Linear, and the shapes of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Attention
from llmd.api.plan import ModelPlan
from llmd.api.state_ops import GatedDelta
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.mixtures import deepseek2_fields, sigmoid_experts
from llmd.models.gguf.state_spaces import having_tensor
from llmd.models.kimi_names import KIMI_NAMES

KIMI = "kimi_linear"
"""The architecture of plans."""
HEAD_DIM, TAPS = "kda.head_dim", "ssm.conv_kernel"


def kimi_linear_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only Kimi Linear has, as its configuration names them; files do not state that
    weights of experts are normalised.
    """
    linear = having_tensor(fields, "ssm_a")
    norm = fields.flags("expert_weights_norm")
    found = (
        sigmoid_experts(fields)
        | deepseek2_fields(fields)
        | {
            "norm_topk_prob": norm is None or bool(norm),
            "max_position_embeddings": fields.integer("context_length"),
        }
    )
    return {KIMI_NAMES.get(name, name): value for name, value in found.items()} | {
        "split_kv_b": any(fields.has_tensor(f"blk.{n}.attn_k_b.weight") for n in range(len(linear))),
        "mla_use_nope": True,
        "linear_attn_config": {
            "full_attn_layers": [layer for layer, one in enumerate(linear, 1) if not one],
            "kda_layers": [layer for layer, one in enumerate(linear, 1) if one],
            "head_dim": fields.integer(HEAD_DIM),
            "num_heads": fields.integer("attention.head_count"),
            "short_conv_kernel_size": fields.integer(TAPS),
        },
    }


def kimi_keys(plan: ModelPlan, delta: GatedDelta) -> dict[str, Value]:
    """Return the keys of its layers with states, without the architecture prefix.

    Raises:
        UnsupportedModelError: these layers have another number of heads than the others.
    """
    heads = {op.heads for part in plan.parts for op in part.ops if isinstance(op, Attention)}
    if heads != {delta.heads}:
        raise UnsupportedModelError(
            f"layers of linear attention have {delta.heads} heads and those of full attention "
            f"{', '.join(map(str, heads)) or 'none'}, but GGUF files of Kimi Linear state one number for both",
            hint="keep the model as a directory",
        )
    return {TAPS: delta.taps, HEAD_DIM: delta.key_dim}


def kimi_shapes(plan: ModelPlan) -> Mapping[str, tuple[int, ...]]:
    """Return by name the shapes of tensors that have more axes in files than in a plan with their names."""
    if plan.architecture != KIMI:
        return {}
    deltas = [op for part in plan.parts for op in part.ops if isinstance(op, GatedDelta)]
    filters = (taps for op in deltas for taps in (op.q_taps, op.k_taps, op.v_taps))
    return {
        **{ref.name: (1, ref.shape[0], 1, ref.shape[-1]) for ref in filters},
        **{op.rates.name: (1, 1, op.heads, 1) for op in deltas},
    }
