"""The keys of DeepSeek-V4, and the shapes of its tensors.

Source: ``conversion/deepseek.py`` and ``src/models/deepseek4.cpp`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from llmd.api.compressed_ops import Compress
from llmd.api.errors import UnsupportedModelError
from llmd.api.expert_ops import Experts, Router
from llmd.api.latent_ops import HeadLinear, Indexer
from llmd.api.ops import Attention, Linear, Op
from llmd.api.plan import ModelPlan, Part
from llmd.api.stream_ops import StreamWeights
from llmd.models.gguf.fields import ROTATED, WINDOW, GgufFields
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.mixtures import GATING, SIGMOID, SOFTMAX, SQRT_SOFTPLUS, expert_width, experts

DEEPSEEK_V4 = "deepseek_v4"
"""The architecture of plans."""
STRIDES, COMPRESSED_THETA = "attention.compress_ratios", "attention.compress_rope_freq_base"
LOW_QUERIES = "attention.q_lora_rank"
OUT_GROUPS, OUT_RANK = "attention.output_group_count", "attention.output_lora_rank"
STREAMS, ROUNDS, FLOOR = (f"hyper_connection.{name}" for name in ("count", "sinkhorn_iterations", "epsilon"))
BY_TABLE = "hash_layer_count"
LIMITS = ("swiglu_clamp_exp", "swiglu_clamp_shexp")
"""The limits of the gates of experts, and of those of the expert that all rows use."""
INDEX: Mapping[str, str] = {
    "index_n_heads": "attention.indexer.head_count",
    "index_head_dim": "attention.indexer.key_length",
    "index_topk": "attention.indexer.top_k",
}
"""Keys by fields of the configuration."""
SCORES: Mapping[int, str] = {SQRT_SOFTPLUS: "sqrtsoftplus", SOFTMAX: "softmax", SIGMOID: "sigmoid"}

STRIDE_OF: Mapping[bool, int] = {True: 4, False: 128}
"""Tokens for a vector: in layers that choose vectors, and in those that see all. No file states others."""

Kind = TypeVar("Kind", bound=Op)


def deepseek4_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields that only this family has.

    Raises:
        CheckpointError: a key is missing or has the wrong type.
        UnsupportedModelError: scores of experts are computed in an unknown way, or layers or experts have
            different limits.
    """
    gating = fields.integer(GATING)
    if gating not in SCORES:
        known = ", ".join(f"{number} {name}" for number, name in SCORES.items())
        raise fields.refuse(GATING, gating, known)
    index = {name: fields.integer(key, None) for name, key in INDEX.items()}
    return (
        experts(fields, "n_routed_experts")
        | {name: value for name, value in index.items() if value is not None}
        | {
            "num_hidden_layers": fields.integer("block_count") - fields.integer("nextn_predict_layers", 0),
            "qk_rope_head_dim": fields.integer(ROTATED),
            "q_lora_rank": fields.integer(LOW_QUERIES),
            "o_groups": fields.integer(OUT_GROUPS),
            "o_lora_rank": fields.integer(OUT_RANK),
            "sliding_window": fields.integer(WINDOW),
            "compress_ratios": fields.numbers(STRIDES),
            "compress_rope_theta": fields.real(COMPRESSED_THETA),
            "num_hash_layers": fields.integer(BY_TABLE),
            "moe_intermediate_size": expert_width(fields),
            "n_shared_experts": fields.integer("expert_shared_count"),
            "routed_scaling_factor": fields.real("expert_weights_scale"),
            "norm_topk_prob": bool(fields.flags("expert_weights_norm")),
            "scoring_func": SCORES[gating],
            "swiglu_limit": _limit(fields),
            "hc_mult": fields.integer(STREAMS),
            "hc_sinkhorn_iters": fields.integer(ROUNDS),
            "hc_eps": fields.real(FLOOR),
        }
    )


def _limit(fields: GgufFields) -> float:
    """Return the limit of all gates. Files may leave out that of the expert which all rows use."""
    stated = [limit for key in LIMITS for limit in fields.numbers(key)]
    if not stated or min(stated) <= 0 or len(set(stated)) > 1:
        raise fields.refuse(LIMITS[0], stated, "one limit above 0 for all layers and experts")
    return float(stated[0])


def deepseek4_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix, but for those of RoPE and of the experts that
    `llmd.models.gguf.layer_keys` has for several families; none for other models.

    Raises:
        UnsupportedModelError: files cannot state how layers compress, or which layers have a table of
            experts.
    """
    if plan.architecture != DEEPSEEK_V4:
        return {}
    attention, streams = next(_each(plan, Attention)), next(_each(plan, StreamWeights))
    groups, rank, _ = next(_each(plan, HeadLinear)).weight.shape
    queries = next(op for op in _each(plan, Linear) if attention.q in op.outs)
    limits = np.array([op.limit or 0.0 for op in _each(plan, Experts)], np.float32)
    return {
        LOW_QUERIES: queries.weights[0].view_shape[-1],
        OUT_GROUPS: groups,
        OUT_RANK: rank,
        STRIDES: np.array(list(_strides(plan)), np.uint32),
        BY_TABLE: _layers_with_table(plan),
        **dict.fromkeys(LIMITS, limits),
        **_index_keys(plan),
        STREAMS: streams.streams,
        ROUNDS: streams.rounds,
        FLOOR: streams.floor,
        "embedding_length_out": plan.hidden_size,
    }


def _strides(plan: ModelPlan) -> Iterator[int]:
    """Yield the tokens for a vector of each layer, 0 where there are no vectors."""
    found = {part.layer: op for part, op in _of_layers(plan, Compress)}
    for layer in range(plan.num_layers):
        op = found.get(layer)
        if op is not None and op.stride != STRIDE_OF[op.overlap]:
            how = "choose among vectors" if op.overlap else "see all vectors"
            raise UnsupportedModelError(
                f"layer {layer} has a vector for {op.stride} tokens, but in GGUF files, layers that {how} have one "
                f"for {STRIDE_OF[op.overlap]}",
                hint="keep the model as a directory",
            )
        yield 0 if op is None else op.stride


def _layers_with_table(plan: ModelPlan) -> int:
    """Return in how many layers, the first, a table has the experts of each token."""
    by_table = [op.given is not None for _, op in _of_layers(plan, Router)]
    count = sum(by_table)
    if not all(by_table[:count]):
        raise UnsupportedModelError(
            "layers with a table of the experts of tokens are not the first, but GGUF files state how many of the "
            "first have one",
            hint="keep the model as a directory",
        )
    return count


def _index_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the sizes of indexers; none if no layer chooses vectors."""
    indexer = next(_each(plan, Indexer), None)
    if indexer is None:
        return {}
    return dict(zip(INDEX.values(), (indexer.heads, indexer.head_dim, indexer.top_k), strict=True))


def deepseek4_shapes(plan: ModelPlan) -> Mapping[str, tuple[int, ...]]:
    """Return by name the shapes of tensors that have other axes in files than in a plan with their names."""
    if plan.architecture != DEEPSEEK_V4:
        return {}
    heads = (op.weight for op in _each(plan, HeadLinear))
    return {
        **{ref.name: (ref.shape[0] * ref.shape[1], ref.shape[2]) for ref in heads},
        **{op.bias.name: (op.stride, op.bias.shape[0] // op.stride) for op in _each(plan, Compress)},
    }


def _each(plan: ModelPlan, kind: type[Kind]) -> Iterator[Kind]:
    return (op for _, op in _of_layers(plan, kind))


def _of_layers(plan: ModelPlan, kind: type[Kind]) -> Iterator[tuple[Part, Kind]]:
    """Yield the ops of a kind, and the parts that have them."""
    return ((part, op) for part in plan.parts for op in part.ops if isinstance(op, kind))
