"""Mistakes in RWKV-7 that the golden bound must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from llmd.api import Activate, Add, GeneralizedDelta, Norm, Op, TokenShift
from tests.golden.mutations import Change, Mutation, drop_gates


def _changed_delta(change: Callable[[GeneralizedDelta], GeneralizedDelta]) -> Change:
    def changed(op: Op) -> Iterator[Op]:
        yield change(op) if isinstance(op, GeneralizedDelta) else op

    return changed


def swap_shares(op: Op) -> Iterator[Op]:
    """Mix rows for decays as those for receptances, and the other way round."""
    if isinstance(op, TokenShift) and len(op.shares) > 1:
        first, second, *others = op.shares
        yield msgspec.structs.replace(op, shares=(second, first, *others))
    else:
        yield op


def forget_the_row_before(op: Op) -> Iterator[Op]:
    """Give the network of a layer the row itself. The mix goes on in vain, or its shares were unused."""
    if isinstance(op, TokenShift) and len(op.shares) == 1:
        yield msgspec.structs.replace(op, outs=("unused",))
        yield Add(op.x, op.x, op.outs[0], scale=0.0)
    else:
        yield op


def drop_bonus(op: Op) -> Iterator[Op]:
    yield Add(op.a, op.b, op.out, scale=0.0) if isinstance(op, Add) and op.b == "bonus" else op


def gate_by_tanh(op: Op) -> Iterator[Op]:
    sigmoid = isinstance(op, Activate) and op.activation == "sigmoid"
    yield msgspec.structs.replace(op, activation="tanh") if sigmoid else op


def do_not_square(op: Op) -> Iterator[Op]:
    squares = isinstance(op, Activate) and op.activation == "relu2"
    yield msgspec.structs.replace(op, activation="relu") if squares else op


def norm_whole_rows(op: Op) -> Iterator[Op]:
    of_heads = isinstance(op, Norm) and op.own_weights
    yield msgspec.structs.replace(op, heads=1, own_weights=False) if of_heads else op


def take_one_epsilon(op: Op) -> Iterator[Op]:
    """Give the norm of heads the epsilon of the others."""
    of_heads = isinstance(op, Norm) and op.own_weights
    yield msgspec.structs.replace(op, eps=1e-3) if of_heads else op


swap_removal_and_mixing = _changed_delta(
    lambda op: msgspec.structs.replace(op, removal=op.mixing, mixing=op.removal)
)
swap_mixing_and_bonuses = _changed_delta(
    lambda op: msgspec.structs.replace(op, mixing=op.bonuses, bonuses=op.mixing)
)
swap_decays_and_rates = _changed_delta(lambda op: msgspec.structs.replace(op, decay=op.a, a=op.decay))
swap_receptances_and_keys = _changed_delta(lambda op: msgspec.structs.replace(op, r=op.k, k=op.r))

RWKV7 = [
    *(
        Mutation("rwkv7", what, change=change)
        for what, change in (
            ("shares swapped", swap_shares),
            ("rows that are not mixed", forget_the_row_before),
            ("no bonus", drop_bonus),
            ("values of the first layer alone", drop_gates),
            ("gates by tanh", gate_by_tanh),
            ("no squares", do_not_square),
            ("one norm", norm_whole_rows),
            ("one epsilon", take_one_epsilon),
            ("removal and mixing swapped", swap_removal_and_mixing),
            ("mixing and bonuses swapped", swap_mixing_and_bonuses),
            ("decays and rates swapped", swap_decays_and_rates),
            ("receptances and keys swapped", swap_receptances_and_keys),
        )
    ),
    Mutation("rwkv7", "half as many heads", {"head_dim": 32}),
    Mutation("rwkv7-odd", "eps 10 % off", {"norm_eps": 1.1e-3}),
]
