"""Mistakes in the choice of positions that the golden bound must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from llmd.api import Activate, Attention, Indexer, Norm, Op, Rope
from tests.golden.models.latents import LITE_ROPE
from tests.golden.mutations import Mutation, drop_correction, same, take_one_epsilon


def attend_to_all(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, chosen=None) if isinstance(op, Attention) else op


def choose_by_sigmoid(op: Op) -> Iterator[Op]:
    """Give heads positive weights."""
    if isinstance(op, Indexer):
        yield Activate(op.head_weights, op.head_weights, "sigmoid")
    yield op


def _changed_norm(changed: Callable[[Norm], Norm]) -> Callable[[Op], Iterator[Op]]:
    """Change the norm of index keys."""

    def change(op: Op) -> Iterator[Op]:
        yield changed(op) if isinstance(op, Norm) and op.x == "index_k" else op

    return change


norm_keys_without_mean = _changed_norm(lambda norm: msgspec.structs.replace(norm, method="rms"))
swap_weight_and_bias = _changed_norm(
    lambda norm: msgspec.structs.replace(norm, weight=norm.bias, bias=norm.weight)
)


def _without_rotation(value: str) -> Callable[[Op], Iterator[Op]]:
    def change(op: Op) -> Iterator[Op]:
        if not (isinstance(op, Rope) and op.x == value):
            yield op

    return change


def rotate_other_pairs_in_indexer(op: Op) -> Iterator[Op]:
    """Rotate halves in place of neighbours in the indexer, or the reverse."""
    if isinstance(op, Rope) and op.x.startswith("index"):
        yield msgspec.structs.replace(op, interleaved=not op.interleaved)
    else:
        yield op


INDEXERS = [
    *(
        Mutation(name, what, change=change)
        for name in ("deepseek-v32", "deepseek-v32-odd", "glm-moe-dsa", "glm-moe-dsa-shared")
        for what, change in (
            ("all positions", attend_to_all),
            ("positive weights of heads", choose_by_sigmoid),
            ("norm of keys without mean and bias", norm_keys_without_mean),
            ("weight and bias of keys swapped", swap_weight_and_bias),
            ("one epsilon", take_one_epsilon),
            ("other pairs", rotate_other_pairs_in_indexer),
            ("queries not rotated", _without_rotation("index_q")),
            ("keys not rotated", _without_rotation("index_k")),
        )
    ),
    *(
        Mutation(name, f"{change:+} position", {"index_topk": right + change})
        for name, right in (
            ("deepseek-v32", 16),
            ("deepseek-v32-odd", 7),
            ("glm-moe-dsa", 16),
            ("glm-moe-dsa-shared", 9),
        )
        for change in (-1, 1)
    ),
    Mutation("deepseek-v32", "no groups", {"n_group": 1, "topk_group": 1}),
    Mutation("deepseek-v32", "one group less", {"topk_group": 1}),
    Mutation(
        "deepseek-v32",
        "scale of scores",
        {"rope_scaling": LITE_ROPE | {"mscale": 0.72, "mscale_all_dim": 0.72}},
    ),
    Mutation("deepseek-v32", "factor", {"routed_scaling_factor": 1.51}),
    Mutation("glm-moe-dsa", "groups", {"n_group": 2}),
    Mutation("glm-moe-dsa", "factor", {"routed_scaling_factor": 1.79}),
    *(
        Mutation(name, what, config, change)
        for name in ("deepseek-v32", "glm-moe-dsa")
        for what, config, change in (
            ("not normalized", {"norm_topk_prob": False}, same),
            ("no correction", {}, drop_correction),
        )
    ),
    Mutation(
        "glm-moe-dsa-shared",
        "positions of another layer",
        {"indexer_types": ["full", "shared", "shared", "shared", "full", "shared"]},
    ),
]
