"""The names that a checkpoint gives to the tensors of a plan."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from llmd.api.ops import Op
from llmd.api.plan import ModelPlan
from llmd.api.tensors import TensorRef

Rename = Callable[[str], str]


def with_stored_names(plan: ModelPlan, stored: Container[str]) -> ModelPlan:
    """The plan with the names of the checkpoint that has the tensors ``stored``.

    Classes of transformers with a head put a prefix (``model.``, ``bert.``) before the names of the model below; where
    that model was saved by itself, as those that embed often are, the prefix is missing.
    """
    first = next(iter(plan.tensor_refs())).name
    prefix = first.partition(".")[0] + "."
    if first in stored or first.removeprefix(prefix) not in stored:
        return plan
    return renamed(plan, lambda name: name.removeprefix(prefix))


def renamed(plan: ModelPlan, name_of: Rename) -> ModelPlan:
    """The plan with ``name_of(name)`` in the place of each tensor's name."""
    parts = (
        msgspec.structs.replace(part, ops=tuple(_renamed(op, name_of) for op in part.ops))
        for part in plan.parts
    )
    return msgspec.structs.replace(plan, parts=tuple(parts))


def _renamed(op: Op, name_of: Rename) -> Op:
    fields = {field: _field_renamed(getattr(op, field), name_of) for field in op.__struct_fields__}
    return msgspec.structs.replace(op, **fields)


def _field_renamed(value: Any, name_of: Rename) -> Any:
    if isinstance(value, TensorRef):
        return msgspec.structs.replace(value, name=name_of(value.name))
    if isinstance(value, tuple):
        return tuple(_field_renamed(item, name_of) for item in value)
    return value
