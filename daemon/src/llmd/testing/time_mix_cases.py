"""The ops of RWKV-7, of any sizes, and workloads for each."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import HIDDEN, Add, KVGroup, Linear, Op, TensorRef
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift
from llmd.testing.op_cases import part_case
from llmd.testing.workload import Workload

_WIDTH = 48


def time_mix_cases() -> Iterator[Workload]:
    """Yield every case of an op of RWKV-7."""
    yield from _token_shift()
    yield from _generalized_delta()


def token_shift(outs: tuple[str, ...], *, width: int = _WIDTH, offset: int = 0) -> TokenShift:
    """Return an op of the first layer that mixes hidden states."""
    shares = tuple(TensorRef(f"{out}.shares", (width,)) for out in outs)
    return TokenShift(HIDDEN, outs, shares, 0, 0, offset)


def generalized_delta(heads: int, head_dim: int, *, offset: int = 0) -> GeneralizedDelta:
    """Return an op of the first layer."""
    removal, mixing, bonuses = (
        TensorRef(name, (heads * head_dim,)) for name in ("removal", "mixing", "bonuses")
    )
    return GeneralizedDelta(
        "r", "k", "v", "decay", "a", "y", "bonus", removal, mixing, bonuses, 0, 0, heads, head_dim, offset
    )


def _token_shift() -> Iterator[Workload]:
    """Yield one mix and several ones, in the whole state and in a part of it."""
    yield _case("token_shift/one", (token_shift((HIDDEN,)),), _WIDTH, max_nmse=1e-10)
    several = token_shift(("a", "b", "c"), offset=5)
    sums: tuple[Op, ...] = (Add("a", "b", "a", scale=-0.5), Add("a", "c", HIDDEN))
    yield _case("token_shift/several", (several, *sums), _WIDTH + 9, max_nmse=1e-10)
    wide = token_shift((HIDDEN,), width=331)
    yield _case("token_shift/wide", (wide,), 331, max_nmse=1e-10, width=331)


def _generalized_delta() -> Iterator[Workload]:
    """Yield heads of odd sizes, states that begin inside those of a layer, and both ops together."""
    for name, op in {
        "even": generalized_delta(4, 16),
        "odd": generalized_delta(3, 13, offset=7),
        "wide": generalized_delta(1, 75),
    }.items():
        yield _case(f"generalized_delta/{name}", _around(op, HIDDEN), op.offset + op.state_elements)
    op = generalized_delta(2, 20, offset=_WIDTH)
    mixed = (token_shift(("mixed",)), *_around(op, "mixed"))
    yield _case("generalized_delta/mixed", mixed, _WIDTH + op.state_elements)


def _around(op: GeneralizedDelta, x: str) -> tuple[Op, ...]:
    """Return the op with linear ops before and behind it."""
    inner = op.heads * op.head_dim
    weights = tuple(TensorRef(value, (inner, _WIDTH)) for value in op.reads)
    return (
        Linear(x, op.reads, weights, (None,) * len(weights)),
        op,
        Add("y", "bonus", "y"),
        Linear("y", (HIDDEN,), (TensorRef("back", (_WIDTH, inner)),), (None,)),
    )


def _case(
    name: str, ops: tuple[Op, ...], elements: int, *, max_nmse: float = 1e-9, width: int = _WIDTH
) -> Workload:
    """Return a case whose layer has a state of ``elements`` elements."""
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=4 * elements)
    return part_case(name, ops, groups=(group,), max_nmse=max_nmse, width=width)
