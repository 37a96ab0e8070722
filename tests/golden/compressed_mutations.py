"""Mistakes in models with compressed attention and hyper-connections that the golden bound must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from llmd.api import (
    Attention,
    Compress,
    Glu,
    MergeAttention,
    Op,
    Rope,
    Router,
    StreamWeights,
)
from tests.golden.models.catalog import tiny_model
from tests.golden.mutations import Mutation, drop_correction, rotate_other_pairs, swap_gates_of_experts

NAMES = ("deepseek-v4", "deepseek-v4-odd", "deepseek-v4-published", "deepseek-v4-some-experts")
YARN = {name: dict(tiny_model(name).config.get("rope_scaling") or {}) for name in NAMES}


def see_all_vectors(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, chosen=None) if isinstance(op, Attention) else op


def drop_sinks(op: Op) -> Iterator[Op]:
    """Attend without sinks, and once with them in vain: a checkpoint with unused weights is refused."""
    if isinstance(op, Attention) and op.sinks is not None:
        sums = None if op.sums is None else "unused sums"
        yield msgspec.structs.replace(op, out="unused", sums=sums)
        yield msgspec.structs.replace(op, sinks=None)
    else:
        yield op


def merge_with_sums_swapped(op: Op) -> Iterator[Op]:
    if isinstance(op, MergeAttention):
        yield msgspec.structs.replace(op, a_sums=op.b_sums, b_sums=op.a_sums)
    else:
        yield op


def turn_outputs_on(op: Op) -> Iterator[Op]:
    """Leave the outputs of attention as they are rotated."""
    if not (isinstance(op, Rope) and op.x == "y"):
        yield op


def rotate_vectors_by_their_last_token(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, stride=1) if isinstance(op, Rope) else op


def swap_parts_and_gates(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, x=op.gate, gate=op.x) if isinstance(op, Compress) else op


def choose_by_scores(op: Op) -> Iterator[Op]:
    """Ignore the experts that a table has for each token."""
    yield msgspec.structs.replace(op, given=None) if isinstance(op, Router) else op


def limit_no_shared_expert(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, limit=None) if isinstance(op, Glu) else op


def balance_once(op: Op) -> Iterator[Op]:
    if isinstance(op, StreamWeights) and op.rounds > 1:
        yield msgspec.structs.replace(op, rounds=1)
    else:
        yield op


OPS: Mapping[str, Callable[[Op], Iterator[Op]]] = {
    "all vectors": see_all_vectors,
    "no sinks": drop_sinks,
    "sums swapped": merge_with_sums_swapped,
    "outputs not turned back": turn_outputs_on,
    "vectors rotated by their last token": rotate_vectors_by_their_last_token,
    "parts and gates swapped": swap_parts_and_gates,
    "experts by score": choose_by_scores,
    "no limit of the shared expert": limit_no_shared_expert,
    "streams balanced once": balance_once,
    "other pairs rotated": rotate_other_pairs,
    "gates of experts swapped with up matrices": swap_gates_of_experts,
    "no correction": drop_correction,
}


USING_ALL_EXPERTS = ("deepseek-v4-published",)


def _fields(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is misread of a configuration."""
    config = tiny_model(name).config
    for field in ("sliding_window", "index_topk"):
        for change in (-1, 1):
            yield f"{field} {change:+}", {field: config[field] + change}
    for field, factor in (
        ("rope_theta", 1.01),
        ("compress_rope_theta", 1.01),
        ("rms_norm_eps", 1.1),
        ("routed_scaling_factor", 1.01),
        ("swiglu_limit", 1.05),
    ):
        yield f"{field} off", {field: config[field] * factor}
    yield "a larger floor of streams", {"hc_eps": config["hc_eps"] + 1e-3}
    yield "scores by sigmoid", {"scoring_func": "sigmoid"}
    yield "another activation", {"hidden_act": "gelu"}
    if config["num_experts_per_tok"] > 1:
        yield "not normalized", {"norm_topk_prob": False}
    for field, wrong in (("factor", 3.9), ("original_max_position_embeddings", 200), ("beta_slow", 0.5)):
        if YARN[name]:
            yield f"YaRN: {field}", {"rope_scaling": YARN[name] | {field: wrong}}
    if YARN[name]:
        yield "YaRN: attention factor", {"rope_scaling": YARN[name] | {"attention_factor": 1.1}}
        yield "no YaRN", {"rope_scaling": None}


COMPRESSED = [
    *(
        Mutation(name, what, change=change)
        for name in NAMES
        for what, change in OPS.items()
        if name not in USING_ALL_EXPERTS or change not in (choose_by_scores, drop_correction)
    ),
    *(Mutation(name, what, config) for name in NAMES for what, config in _fields(name)),
    Mutation("deepseek-v4-odd", "a round of balancing less", {"hc_sinkhorn_iters": 2}),
]
