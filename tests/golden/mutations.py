"""Programs that are wrong in one place, to show that the golden bound would notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from llmd.api import (
    Add,
    Architecture,
    Attention,
    Embed,
    Experts,
    Gate,
    Head,
    Linear,
    ModelPlan,
    Multiply,
    Norm,
    Op,
    Rope,
    Router,
)
from llmd.api.latent_ops import HeadLinear, Join
from llmd.api.plugins import Config
from llmd.api.state_ops import GatedDelta, StateSpace

Change = Callable[[Op], Iterator[Op]]


def same(op: Op) -> Iterator[Op]:
    yield op


@dataclass(frozen=True)
class Mutation:
    """One mistake in a tiny model: fields of ``config.json`` misread, or ops of the plan changed."""

    case: str
    what: str
    config: Mapping[str, Any] = field(default_factory=dict)
    change: Change = same

    def __str__(self) -> str:
        return f"{self.case}: {self.what}"

    def architectures(self, right: Mapping[str, Architecture]) -> dict[str, Architecture]:
        """The architectures with this mistake in each."""
        return {name: self._wrong(architecture) for name, architecture in right.items()}

    def _wrong(self, architecture: Architecture) -> Architecture:
        def plan(config: Config, context_len: int | None) -> ModelPlan:
            misread = {**config, **self.config}
            return self._changed(architecture.plan(misread, misread.get("context_len", context_len)))

        return Architecture(architecture.names, plan)

    def _changed(self, plan: ModelPlan) -> ModelPlan:
        parts = (
            msgspec.structs.replace(part, ops=tuple(new for op in part.ops for new in self.change(op)))
            for part in plan.parts
        )
        return msgspec.structs.replace(plan, parts=tuple(parts))


def interleave_rope(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, interleaved=True) if isinstance(op, Rope) else op


def rotate_other_pairs(op: Op) -> Iterator[Op]:
    """Rotate halves in place of neighbours, or the reverse."""
    yield msgspec.structs.replace(op, interleaved=not op.interleaved) if isinstance(op, Rope) else op


def drop_qk_norms(op: Op) -> Iterator[Op]:
    """Leave queries and keys as they are.
    The norm goes on in vain: a checkpoint with unused weights is refused.
    """
    unnormed = isinstance(op, Norm) and op.out in ("q", "k")
    yield msgspec.structs.replace(op, out=f"unused {op.x}") if unnormed and isinstance(op, Norm) else op


def drop_norm_offset(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, offset=0.0) if isinstance(op, Norm) else op


def drop_biases(op: Op) -> Iterator[Op]:
    """Compute without biases, and once with them in vain, as above."""
    if isinstance(op, Linear) and any(op.biases):
        yield msgspec.structs.replace(op, outs=tuple(f"unused {out}" for out in op.outs))
        yield msgspec.structs.replace(op, biases=(None,) * len(op.outs))
    else:
        yield op


def drop_embedding_scale(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, scale=1.0) if isinstance(op, Embed) else op


def drop_logit_scale(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, scale=1.0) if isinstance(op, Head) else op


def swap_gate_and_up(op: Op) -> Iterator[Op]:
    swapped = isinstance(op, Linear) and op.outs == ("gate", "up")
    yield msgspec.structs.replace(op, outs=("up", "gate")) if swapped else op


def drop_gates(op: Op) -> Iterator[Op]:
    """Leave the output of a shared expert as it is."""
    yield Add(op.x, op.x, op.out, scale=0.0) if isinstance(op, Gate) else op


def swap_gates_of_experts(op: Op) -> Iterator[Op]:
    if isinstance(op, Experts) and op.gate is not None:
        yield msgspec.structs.replace(op, gate=op.up, up=op.gate)
    else:
        yield op


def drop_correction(op: Op) -> Iterator[Op]:
    """Choose experts by their scores alone, and once more with the correction in vain."""
    if isinstance(op, Router):
        yield msgspec.structs.replace(op, out="unused")
        yield msgspec.structs.replace(op, correction=None)
    else:
        yield op


def leave_weights(op: Op) -> Iterator[Op]:
    """Do not divide the weights of a row's experts by their sum."""
    yield msgspec.structs.replace(op, normalized=False) if isinstance(op, Router) else op


def score_groups_by_largest(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, group_score="largest") if isinstance(op, Router) else op


def score_by_softmax(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, score="softmax") if isinstance(op, Router) else op


def drop_sinks(op: Op) -> Iterator[Op]:
    """Attend without sinks, and once with them in vain, as above."""
    if isinstance(op, Attention):
        yield msgspec.structs.replace(op, out="unused")
        yield msgspec.structs.replace(op, sinks=None)
    else:
        yield op


def drop_router_bias(op: Op) -> Iterator[Op]:
    if isinstance(op, Router):
        yield msgspec.structs.replace(op, out="unused")
        yield msgspec.structs.replace(op, bias=None)
    else:
        yield op


def drop_biases_of_experts(op: Op) -> Iterator[Op]:
    if isinstance(op, Experts):
        yield msgspec.structs.replace(op, out="unused")
        yield msgspec.structs.replace(op, gate_bias=None, up_bias=None, down_bias=None)
    else:
        yield op


def drop_offset(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, offset=0.0) if isinstance(op, Experts) else op


def activate_by_silu(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, activation="silu") if isinstance(op, Experts) else op


def drop_limit(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, limit=None) if isinstance(op, Experts) else op


def drop_factors(op: Op) -> Iterator[Op]:
    """Leave the output of layers as it is; multiply in vain, as above."""
    yield msgspec.structs.replace(op, out="unused") if isinstance(op, Multiply) else op


def drop_value_norms(op: Op) -> Iterator[Op]:
    if isinstance(op, Norm) and op.weight is None:
        yield Add(op.x, op.x, op.out, scale=0.0)
    else:
        yield op


def shift_columns(op: Op) -> Iterator[Op]:
    """Look up the input of the layer before, in the first layer that of the last."""
    if isinstance(op, Embed) and op.columns is not None:
        width = op.columns[1] - op.columns[0]
        first = (op.columns[0] - width) % op.table.view_shape[1]
        yield msgspec.structs.replace(op, columns=(first, first + width))
    else:
        yield op


def drop_table_scale(op: Op) -> Iterator[Op]:
    has_columns = isinstance(op, Embed) and op.columns is not None
    yield msgspec.structs.replace(op, scale=1.0) if has_columns else op


def drop_gains(op: Op) -> Iterator[Op]:
    if isinstance(op, Router):
        yield msgspec.structs.replace(op, out="unused")
        yield msgspec.structs.replace(op, gains=None)
    else:
        yield op


def drop_router_scale(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, scale=1.0) if isinstance(op, Router) else op


def read_layer_0(op: Op) -> Iterator[Op]:
    """Read the keys of the first layer of the group, where a layer reads those of another one."""
    if isinstance(op, Attention) and op.k is None and op.layer == 1:
        yield msgspec.structs.replace(op, layer=0)
    else:
        yield op


def scale_scores(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, scale=op.head_dim**-0.5) if isinstance(op, Attention) else op


def _changed_delta(change: Callable[[GatedDelta], GatedDelta]) -> Change:
    def changed(op: Op) -> Iterator[Op]:
        yield change(op) if isinstance(op, GatedDelta) else op

    return changed


def _changed_space(change: Callable[[StateSpace], StateSpace]) -> Change:
    def changed(op: Op) -> Iterator[Op]:
        yield change(op) if isinstance(op, StateSpace) else op

    return changed


def norm_whole_rows(op: Op) -> Iterator[Op]:
    """One norm for the whole row where each slice has its own."""
    whole = isinstance(op, Norm) and op.own_weights
    yield msgspec.structs.replace(op, heads=1, own_weights=False) if whole else op


swap_b_and_c = _changed_space(lambda op: msgspec.structs.replace(op, b=op.c, c=op.b))
swap_filters_of_b_and_c = _changed_space(
    lambda op: msgspec.structs.replace(op, b_taps=op.c_taps, c_taps=op.b_taps)
)
swap_filter_biases = _changed_space(
    lambda op: msgspec.structs.replace(op, b_bias=op.c_bias, c_bias=op.b_bias)
)
swap_rates_and_skips = _changed_space(lambda op: msgspec.structs.replace(op, rates=op.skips, skips=op.rates))
swap_rates_and_time_bias = _changed_space(
    lambda op: msgspec.structs.replace(op, rates=op.bias, bias=op.rates)
)
drop_bounds = _changed_space(lambda op: msgspec.structs.replace(op, least_time=0.0, most_time=None))
swap_decay_and_beta = _changed_delta(lambda op: msgspec.structs.replace(op, decay=op.beta, beta=op.decay))
swap_queries_and_keys = _changed_delta(lambda op: msgspec.structs.replace(op, q=op.k, k=op.q))
swap_filters = _changed_delta(lambda op: msgspec.structs.replace(op, q_taps=op.k_taps, k_taps=op.q_taps))
swap_rates_and_bias = _changed_delta(lambda op: msgspec.structs.replace(op, rates=op.bias, bias=op.rates))
tile_heads = _changed_delta(lambda op: msgspec.structs.replace(op, tiled=True))


def take_other_columns(op: Op) -> Iterator[Op]:
    """Take the rows of values for those of keys, of which there are as many."""
    if isinstance(op, HeadLinear) and op.weight.columns is not None:
        first, last = op.weight.columns
        columns = (last, 2 * last - first)
        yield msgspec.structs.replace(op, weight=msgspec.structs.replace(op.weight, columns=columns))
    else:
        yield op


def take_other_rows(op: Op) -> Iterator[Op]:
    """Take the rows of keys for those of values, of which there are as many."""
    if isinstance(op, HeadLinear) and op.weight.rows is not None:
        first, last = op.weight.rows
        rows = (2 * first - last, first)
        yield msgspec.structs.replace(op, weight=msgspec.structs.replace(op.weight, rows=rows))
    else:
        yield op


def join_the_other_way(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, a=op.b, b=op.a) if isinstance(op, Join) else op


def join_queries_as_one_head(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, heads=1) if isinstance(op, Join) else op


def take_one_epsilon(op: Op) -> Iterator[Op]:
    """Give norms of latent vectors the epsilon of the others."""
    yield msgspec.structs.replace(op, eps=1e-3) if isinstance(op, Norm) else op


def sum_two_of_groups(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, group_score="sum_of_two") if isinstance(op, Router) else op
