"""Remove the head from a plan: a model that embeds instead of generating."""

from __future__ import annotations

import msgspec

from llmd.api.ops import Head, Op
from llmd.api.plan import HIDDEN, ModelPlan, Part


def without_head(plan: ModelPlan) -> ModelPlan:
    """Return the plan without its head: the last part writes the head's input as `HIDDEN`.

    A plan without a head is returned as it is.
    """
    if not plan.has_head:
        return plan
    *body, last = plan.parts
    head = next(op for op in last.ops if isinstance(op, Head))
    ops = tuple(_leaving(op, head.x) for op in last.ops if not isinstance(op, Head))
    end = [Part("final norm", "norm", None, ops)] if ops else []
    return msgspec.structs.replace(plan, parts=(*body, *end))


def _leaving(op: Op, value: str) -> Op:
    """Return the op with ``HIDDEN`` in place of a value that it writes."""
    written = {field: HIDDEN for field in op.write_fields if getattr(op, field) == value}
    return msgspec.structs.replace(op, **written)
