"""Mistakes in Kimi Linear that the golden bound must notice."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import Activate, Gate, Glu, Op
from tests.golden.mutations import (
    Mutation,
    drop_correction,
    drop_gates,
    score_by_softmax,
    swap_filters,
    swap_gates_of_experts,
    swap_queries_and_keys,
    take_one_epsilon,
)


def gate_by_silu(op: Op) -> Iterator[Op]:
    yield Glu(op.gate, op.x, op.out, "silu") if isinstance(op, Gate) else op


def activate_decays(op: Op) -> Iterator[Op]:
    """Put an activation between the two matrices of decays."""
    yield op
    if "decay_low" in op.writes:
        yield Activate("decay_low", "decay_low", "silu")


KIMI = [
    *(
        Mutation("kimi-linear", what, change=change)
        for what, change in (
            ("filters swapped", swap_filters),
            ("queries and keys swapped", swap_queries_and_keys),
            ("no gates", drop_gates),
            ("gates by silu", gate_by_silu),
            ("decays activated", activate_decays),
            ("softmax", score_by_softmax),
            ("no correction", drop_correction),
            ("gate and up swapped", swap_gates_of_experts),
        )
    ),
    Mutation("kimi-linear", "factor", {"routed_scaling_factor": 1.0}),
    Mutation("kimi-linear", "one expert less", {"num_experts_per_token": 2}),
    Mutation("kimi-linear", "one epsilon", change=take_one_epsilon),
    Mutation("kimi-linear-groups", "no groups", {"num_expert_group": 1, "topk_group": 1}),
    Mutation("kimi-linear-groups", "one group less", {"topk_group": 1}),
    Mutation("kimi-linear-groups", "normalized", {"moe_renormalize": True}),
]
