"""The features that a device must support for some ops and what their layers keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llmd.api.adapter_ops import Adapt
from llmd.api.expert_ops import Router
from llmd.api.features import (
    ADAPTERS,
    ATTENTION_SUMS,
    CHOSEN_POSITIONS,
    COLUMNS,
    GIVEN_EXPERTS,
    LATENT,
    LIMITS,
    OWN_WEIGHTS,
    SHARED_KEYS,
    SINKS,
    STATE,
    STRIDES,
)
from llmd.api.ops import Attention, Embed, Glu, Norm, Op, Rope
from llmd.api.plan import KVGroup, KVKind

_OF_KINDS: dict[KVKind, str] = {"state": STATE, "latent": LATENT}
"""Features for the kinds of KV groups that not every device supports."""


def needed_features(groups: Iterable[KVGroup], ops: Iterable[Op]) -> set[str]:
    """Return the features for what layers keep and for options of ops."""
    found = {name for op in ops for name in _of_op(op)}
    for group in groups:
        if group.layers:
            found |= {_OF_KINDS[group.kind]} if group.kind in _OF_KINDS else set()
            found |= {STRIDES} if group.stride > 1 else set()
    return found


def _of_op(op: Op) -> Iterator[str]:
    """Yield the features of the options that an op has."""
    match op:
        case Attention():
            yield from _of_attention(op)
        case Embed(columns=(_, _)):
            yield COLUMNS
        case Norm(own_weights=True):
            yield OWN_WEIGHTS
        case Rope(stride=stride) if stride > 1:
            yield STRIDES
        case Router(score=score, given=given) if given is not None or score == "sqrt_softplus":
            yield GIVEN_EXPERTS
        case Glu(limit=float()):
            yield LIMITS
        case Adapt():
            yield ADAPTERS


def _of_attention(op: Attention) -> Iterator[str]:
    options = (
        (SINKS, op.sinks),
        (SHARED_KEYS, op.k is None or None),
        (CHOSEN_POSITIONS, op.chosen),
        (ATTENTION_SUMS, op.sums),
    )
    return (name for name, option in options if option is not None)
