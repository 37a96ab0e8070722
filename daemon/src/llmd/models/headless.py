"""A model without its head: what embeds, as against what generates."""

from __future__ import annotations

import msgspec

from llmd.api.ops import Head, Op
from llmd.api.plan import HIDDEN, ModelPlan, Part


def without_head(plan: ModelPlan) -> ModelPlan:
    """The plan up to where the head would read: the last part writes that as `HIDDEN`. One that has no head stays."""
    if not plan.has_head:
        return plan
    *body, last = plan.parts
    head = next(op for op in last.ops if isinstance(op, Head))
    ops = tuple(_leaving(op, head.x) for op in last.ops if not isinstance(op, Head))
    end = [Part("final norm", "norm", None, ops)] if ops else []
    return msgspec.structs.replace(plan, parts=(*body, *end))


def _leaving(op: Op, value: str) -> Op:
    """The op with ``HIDDEN`` in the place of a value that it writes."""
    written = {field: HIDDEN for field in op.write_fields if getattr(op, field) == value}
    return msgspec.structs.replace(op, **written)
