"""Workloads for the ops of latent attention."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import (
    HIDDEN,
    Attention,
    Format,
    HeadLinear,
    Join,
    KVGroup,
    Linear,
    Op,
    TensorRef,
)
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.op_cases import long_case, part_case
from llmd.testing.workload import Workload

_WIDTH = 48
_BACK = TensorRef("back", (_WIDTH, 4 * 20))


def latent_cases() -> Iterator[Workload]:
    """Yield every case of `HeadLinear`, `Join` and attention in a group of kind ``latent``."""
    yield from _head_linear()
    yield from _join()
    yield from _attention()


def head_linear_ops(heads: int, inner: int, outer: int, width: int = _WIDTH) -> tuple[Op, ...]:
    """Return ops with a matrix ``[outer, inner]`` for each head."""
    enter = TensorRef("enter", (heads * inner, width))
    back = TensorRef("back", (width, heads * outer))
    return (
        Linear(HIDDEN, ("a",), (enter,), (None,)),
        HeadLinear("a", "b", TensorRef("heads", (heads, outer, inner), is_stack=True)),
        Linear("b", (HIDDEN,), (back,), (None,)),
    )


def integer_case(name: Format, width: int) -> Workload:
    """Return a case with matrices of heads in an integer format."""
    ops = head_linear_ops(3, width, width, width)
    return part_case(f"head_linear/{name}", ops, name, max_nmse=1e-7, width=width)


def _head_linear() -> Iterator[Workload]:
    for fmt in ("f32", "f16", "bf16"):
        yield part_case(f"head_linear/{fmt}", head_linear_ops(4, 12, 20), fmt, max_nmse=1e-9)
        yield part_case(f"head_linear/{fmt}-wide", head_linear_ops(3, 70, 100), fmt, max_nmse=1e-9)
    kept = TensorRef("heads", (4, 30, 20), rows=(12, 30), is_stack=True)
    turned = TensorRef("heads", (4, 30, 20), columns=(0, 12), is_stack=True, is_transposed=True)
    ops = (
        HeadLinear(HIDDEN, "a", turned),
        HeadLinear("a", "b", kept),
        Linear("b", (HIDDEN,), (TensorRef("back", (_WIDTH, 72)),), (None,)),
    )
    yield part_case("head_linear/two-of-one-tensor", ops, max_nmse=1e-9)


def _join() -> Iterator[Workload]:
    for name, heads, first, second in (("heads", 4, 13, 7), ("row", 1, 50, 30), ("alike", 5, 8, 8)):
        weights = tuple(TensorRef(n, (heads * width, _WIDTH)) for n, width in (("a", first), ("b", second)))
        ops = (
            Linear(HIDDEN, ("a", "b"), weights, (None, None)),
            Join("a", "b", "c", heads),
            Linear("c", (HIDDEN,), (_BACK,), (None,)),
        )
        yield part_case(f"join/{name}", ops, max_nmse=1e-9)


def _attention() -> Iterator[Workload]:
    for name, heads, key_dim, value_dim in (("latent", 4, 28, 20), ("latent-odd", 5, 37, 16)):
        for kv_dtype in LATENT_KV_DTYPES:
            group = KVGroup(0, None, 1, key_dim, (0,), kind="latent", value_dim=value_dim)
            q, k = (TensorRef(n, (count * key_dim, _WIDTH)) for n, count in (("q", heads), ("k", 1)))
            ops = (
                Linear(HIDDEN, ("q", "k"), (q, k), (None, None)),
                Attention("q", "k", "k", "y", 0, 0, heads, 1, key_dim, 0.2, value_dim=value_dim),
                Linear("y", (HIDDEN,), (_BACK,), (None,)),
            )
            bounds = MAX_NMSE["f32"][kv_dtype]
            case = part_case(f"attention/{name}-{kv_dtype}", ops, groups=(group,), max_nmse=bounds.part)
            case = msgspec.structs.replace(case, kv_dtype=kv_dtype, kv_is_tested=True)
            yield case
            if name == "latent":
                yield long_case(msgspec.structs.replace(case, name=f"attention/long-latent-{kv_dtype}"))
