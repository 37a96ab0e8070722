"""The shapes of tensors that have other axes in a directory than in a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from llmd.api.compressed_ops import Compress
from llmd.api.latent_ops import HeadLinear
from llmd.api.ops import Op
from llmd.api.plan import ModelPlan
from llmd.api.state_ops import GatedDelta
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift

Shape = tuple[int, ...]
RATES_HAVE_AXES = ("kimi_linear",)
"""Architectures whose rates of linear attention have four axes, three of one element."""


def directory_shapes(plan: ModelPlan) -> Mapping[str, Shape]:
    """Return the shapes by name."""
    return dict(shape for part in plan.parts for op in part.ops for shape in _of_op(op, plan.architecture))


def _of_op(op: Op, architecture: str) -> Iterator[tuple[str, Shape]]:
    match op:
        case HeadLinear(weight=ref):
            members, *axes = ref.shape
            yield ref.name, (members * axes[0], axes[1])
        case Compress(bias=ref):
            yield ref.name, (op.stride, ref.shape[0] // op.stride)
        case GatedDelta() if architecture in RATES_HAVE_AXES:
            yield op.rates.name, (1, 1, op.heads, 1)
        case TokenShift() if len(op.shares) > 1:
            yield from ((ref.name, (1, 1, op.state_elements)) for ref in op.shares)
        case GeneralizedDelta():
            yield op.bonuses.name, (op.heads, op.head_dim)
