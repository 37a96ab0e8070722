"""Map the tensor names of a plan to those of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from llmd.api.ops import Op
from llmd.api.plan import ModelPlan
from llmd.api.tensors import TensorRef
from llmd.models.stored_experts import with_stored_experts

Rename = Callable[[str], str]


def with_stored_names(plan: ModelPlan, stored: Container[str]) -> ModelPlan:
    """Return the plan with the tensor names of a checkpoint that has the tensors ``stored``.

    Classes of transformers with a head add a prefix (``model.``, ``bert.``) to the names of the model below.
    If that model was saved by itself, as embedding models often are, the prefix is missing. In a model for
    images or audio too, the text model is named ``language_model`` or ``text_model``. A matrix with an
    adapter is named ``base_layer``. See `llmd.models.stored_experts` for experts.
    """
    first = next(iter(plan.tensor_refs())).name
    prefix = first.partition(".")[0] + "."
    spellings: tuple[Rename, ...] = (
        str,
        lambda name: name.removeprefix(prefix),
        lambda name: f"language_model.{name}",
        lambda name: name.replace("model.", "model.language_model.", 1),
        lambda name: name.replace("model.", "model.text_model.", 1),
    )
    spelled = next((spelling for spelling in spellings if spelling(first) in stored), str)
    changed = renamed(plan, lambda name: _below_adapter(spelled(name), stored))
    found = with_stored_experts(changed, stored)
    return plan if found == plan else found


def _below_adapter(name: str, stored: Container[str]) -> str:
    module, _, kind = name.rpartition(".")
    below = f"{module}.base_layer.{kind}"
    return below if below in stored and name not in stored else name


def renamed(plan: ModelPlan, name_of: Rename) -> ModelPlan:
    """Return the plan with each tensor's name replaced by ``name_of(name)``."""
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
