"""Workloads for each scaled format: matrices with short groups, a head, tables, experts, whole programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, SCALED_FORMATS, Add, Embed, Head, Linear, Op, TensorRef
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.testing import latent_cases
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.expert_cases import integer_case
from llmd.testing.op_cases import embed_case, head_case, part_case
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

_VOCAB = 131
_NARROW = 140
"""Not a multiple of the group, nor of any vector."""
_WIDE = 517
_MAX = MAX_NMSE["f32"]["f32"]


def scaled_cases() -> Iterator[Workload]:
    """Yield the cases of every scaled format, whose sums are as exact as those of plain weights."""
    for name in SCALED_FORMATS:
        yield part_case(f"linear/{name}", _linear_ops(), name, max_nmse=_MAX.part, width=_NARROW)
        for case in (integer_case(name, _NARROW, 72), latent_cases.integer_case(name, _NARROW)):
            yield msgspec.structs.replace(case, max_nmse=_MAX.part)
        yield head_case(
            f"head/{name}", Head(HIDDEN, TensorRef("head", (_VOCAB, _NARROW))), name, width=_NARROW
        )
        table = TensorRef("table", (_VOCAB, 3 * _NARROW))
        columns = Embed(HIDDEN, table, scale=2.5, columns=(_NARROW - 5, 2 * _NARROW - 5))
        yield embed_case(f"embed/{name}-columns", columns, name, width=_NARROW)
        plan = TinyModel(tied=True).plan()
        tokens = (tuple(range(3, 40)), (7,), tuple(range(60, 80)))
        yield Workload(
            f"program/{name}-tied",
            plan,
            0,
            len(plan.parts),
            tokens,
            name,
            integer_ops=(*FACTOR_OPS, *TABLE_OPS),
            max_nmse=_MAX.program,
        )


def _linear_ops() -> tuple[Op, ...]:
    """Return a matrix with a bias, one back to the first width, and two slices of a tensor at odd offsets."""
    there, back = TensorRef("there", (_WIDE, _NARROW)), TensorRef("back", (_NARROW, _WIDE))
    cut = tuple(
        TensorRef("fused", (2 * _NARROW + 3, _NARROW), rows=(first, first + _NARROW))
        for first in (3, _NARROW + 3)
    )
    return (
        Linear(HIDDEN, ("a",), (there,), (TensorRef("there.bias", (_WIDE,)),)),
        Linear("a", ("b",), (back,), (None,)),
        Linear(HIDDEN, ("c", "d"), cut, (None, TensorRef("d.bias", (_NARROW,)))),
        Add("c", "d", "e"),
        Add("b", "e", HIDDEN),
    )
