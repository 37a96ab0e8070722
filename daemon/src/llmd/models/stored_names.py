"""The names that a checkpoint gives to the tensors of a plan."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec

from llmd.api.ops import Op
from llmd.api.plan import ModelPlan
from llmd.api.tensors import TensorRef


def with_stored_names(plan: ModelPlan, stored: Container[str]) -> ModelPlan:
    """The plan with the names of the checkpoint that has the tensors ``stored``.

    Classes of transformers with a head put a prefix (``model.``, ``bert.``) before the names of the model below; where
    that model was saved by itself, as those that embed often are, the prefix is missing.
    """
    first = next(iter(plan.tensor_refs())).name
    prefix = first.partition(".")[0] + "."
    if first in stored or first.removeprefix(prefix) not in stored:
        return plan
    parts = (
        msgspec.structs.replace(part, ops=tuple(_renamed(op, prefix) for op in part.ops))
        for part in plan.parts
    )
    return msgspec.structs.replace(plan, parts=tuple(parts))


def _renamed(op: Op, prefix: str) -> Op:
    return msgspec.structs.replace(
        op, **{field: _without(getattr(op, field), prefix) for field in op.__struct_fields__}
    )


def _without(value: Any, prefix: str) -> Any:
    """A field of an op, tensors in it without the prefix."""
    if isinstance(value, TensorRef):
        return msgspec.structs.replace(value, name=value.name.removeprefix(prefix))
    if isinstance(value, tuple):
        return tuple(_without(item, prefix) for item in value)
    return value
