"""Workloads for adapters: each sequence has its own, or none."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, Adapt, Add, Linear, LowRank, ModelPlan, Op, TensorRef
from llmd.models.adapters.adapted_plan import adapted
from llmd.testing.op_cases import part_case
from llmd.testing.plans import TinyModel
from llmd.testing.program_cases import tokens_of
from llmd.testing.workload import Workload

_WIDTH = 48
_RANKS = (8, 1, 20)
"""Ranks of the adapters."""
_SEQUENCES = (1, -1, 2)
"""Adapters of the sequences of a case."""


def adapter_cases() -> Iterator[Workload]:
    """Yield every case of `Adapt`."""
    for fmt in ("f32", "f16", "bf16"):
        yield _case(f"adapt/{fmt}", _of_two(70, 30), _SEQUENCES, fmt)
    yield _case("adapt/q8", _of_two(96, 64, width=64), _SEQUENCES, "q8", max_nmse=1e-7, width=64)
    yield _case("adapt/wide", _of_two(300, 200, ranks=(64, 130, 5), width=600), (0, 1, 0), width=600)
    yield _case("adapt/alike", _of_two(70, 30), (2, 2, 2))
    yield _case("adapt/none", _of_two(70, 30), (-1, -1, -1))
    yield _case("adapt/value-is-kept", _with_kept_value(), (0, -1, 1))
    yield _case("adapt/rows-of-one-tensor", _with_rows(), (1, 0, -1))
    plan = adapted_model()
    name, tokens = "program/adapters", tokens_of(plan.vocab_size)
    whole = Workload(name, plan, 0, len(plan.parts), tokens, edits=True, max_nmse=1e-9)
    yield msgspec.structs.replace(whole, adapters=(1, 0, -1))


def adapted_model() -> ModelPlan:
    """Return the small model with two adapters: of all linear layers, and of those of its first layer."""
    plan = TinyModel().plan()
    weights = {w for part in plan.parts for op in part.ops if isinstance(op, Linear) for w in op.weights}
    of_all = {one.name: low_rank(one, 4, "all") for one in weights}
    of_first = {name: low_rank(one, 9, "first") for one in weights if ".0." in (name := one.name)}
    return adapted(plan, (of_all, of_first))


def low_rank(weight: TensorRef, rank: int, adapter: str = "", scale: float = 0.5) -> LowRank:
    """Return what an adapter adds to the product of a weight."""
    outputs, inputs = weight.whole_shape
    a = TensorRef(f"{adapter}.{weight.name}.a", (rank, inputs))
    return LowRank(a, TensorRef(f"{adapter}.{weight.name}.b", (outputs, rank)), scale)


def _case(
    name: str,
    ops: tuple[Op, ...],
    adapters: tuple[int, ...],
    fmt: str = "f32",
    max_nmse: float = 1e-9,
    width: int = _WIDTH,
) -> Workload:
    case = part_case(name, ops, fmt, max_nmse=max_nmse, width=width)
    return msgspec.structs.replace(case, adapters=adapters)


def _of_two(first: int, second: int, ranks: tuple[int, ...] = _RANKS, width: int = _WIDTH) -> tuple[Op, ...]:
    """Return ops with adapters of two products, of which the second adapter changes only one."""
    a, b = TensorRef("a", (first, width)), TensorRef("b", (second, width))
    of_first = tuple(low_rank(a, rank, f"of {i}", 0.5 + i) for i, rank in enumerate(ranks))
    of_second = tuple(None if i == 1 else low_rank(b, rank + 2, f"of {i}") for i, rank in enumerate(ranks))
    return (
        Linear(HIDDEN, ("a", "b"), (a, b), (None, None)),
        Adapt(HIDDEN, ("a", "b"), ("a", "b"), (of_first, of_second)),
        *_back(first, second, width),
    )


def _with_kept_value() -> tuple[Op, ...]:
    """Return ops that read a value also as it was before adapters."""
    weight = TensorRef("a", (30, _WIDTH))
    factors = tuple(low_rank(weight, rank, f"of {rank}") for rank in (3, 5))
    return (
        Linear(HIDDEN, ("a",), (weight,), (None,)),
        Adapt(HIDDEN, ("a",), ("b",), (factors,)),
        *_back(30, 30, _WIDTH),
    )


def _with_rows() -> tuple[Op, ...]:
    """Return ops for two parts of a fused matrix, whose adapters are fused, too."""
    whole = TensorRef("ab", (70, _WIDTH))
    parts = tuple(msgspec.structs.replace(whole, rows=rows) for rows in ((0, 44), (44, 70)))
    factors = [low_rank(whole, rank, f"of {rank}") for rank in (6, 11)]
    of_parts = tuple(
        tuple(msgspec.structs.replace(f, b=msgspec.structs.replace(f.b, rows=p.rows)) for f in factors)
        for p in parts
    )
    return (
        Linear(HIDDEN, ("a", "b"), parts, (None, None)),
        Adapt(HIDDEN, ("a", "b"), ("a", "b"), of_parts),
        *_back(44, 26, _WIDTH),
    )


def _back(first: int, second: int, width: int) -> tuple[Op, ...]:
    """Return ops that add up two values."""
    c, d = TensorRef("c", (width, first)), TensorRef("d", (width, second))
    return (
        Linear("a", ("c",), (c,), (None,)),
        Linear("b", ("d",), (d,), (None,)),
        Add("c", "d", HIDDEN),
    )
