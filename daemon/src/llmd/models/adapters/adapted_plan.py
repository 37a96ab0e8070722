"""Add the adapters of a model to its plan: an `Adapt` after each product that one of them changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from llmd.api.adapter_ops import Adapt, LowRank
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.api.ops import Linear, Op
from llmd.api.plan import ModelPlan
from llmd.api.tensors import PLAIN_FORMATS, TensorRef
from llmd.models.adapters.adapter import Adapter, Change

WEIGHT = ".weight"
WITHOUT_ADAPTER = " without adapters"
"""Ends the name of a value that adapters change."""
IN_LAYER = re.compile(r"(?:^|\.)(layers\.\d+\..*)$")

Changes = Mapping[str, LowRank]
"""What an adapter adds, by the name of the weight whose product it changes."""


def with_adapters(plan: ModelPlan, adapters: Sequence[Adapter]) -> ModelPlan:
    """Return the plan with its adapters, numbered in the order given.

    The plan has the tensor names of the checkpoint.

    Raises:
        CheckpointError: an adapter does not fit the model: a module or a shape differs.
        UnsupportedModelError: an adapter changes something other than the matrices of linear layers.
    """
    weights = {weight.name: weight for op in _ops(plan) if isinstance(op, Linear) for weight in op.weights}
    others = {ref.name for ref in plan.tensor_refs()} - weights.keys()
    return adapted(plan, [_changes(adapter, weights, others) for adapter in adapters])


def adapted(plan: ModelPlan, changes: Sequence[Changes]) -> ModelPlan:
    """Return the plan with adapters, given as what each changes."""
    parts = (
        msgspec.structs.replace(part, ops=tuple(new for op in part.ops for new in _adapted(op, changes)))
        for part in plan.parts
    )
    return msgspec.structs.replace(plan, parts=tuple(parts))


def _ops(plan: ModelPlan) -> Iterator[Op]:
    return (op for part in plan.parts for op in part.ops)


def _changes(adapter: Adapter, weights: Mapping[str, TensorRef], others: set[str]) -> Changes:
    by_module = {_module(name): name for name in weights}
    in_layers = {found[1]: name for module, name in by_module.items() if (found := IN_LAYER.search(module))}
    changes = {}
    for module, change in adapter.changes.items():
        in_layer = IN_LAYER.search(module)
        # Classes of transformers name the model around the layers differently: only the layers must agree.
        name = by_module.get(module) or (in_layers.get(in_layer[1]) if in_layer else None)
        if name is None:
            raise _no_such_module(adapter, module, change.a, others)
        changes[name] = _low_rank(adapter, change, weights[name])
    return changes


def _module(weight: str) -> str:
    return weight.removesuffix(WEIGHT).removesuffix(".base_layer")


def _no_such_module(adapter: Adapter, module: str, tensor: str, others: set[str]) -> Exception:
    end = found[1] if (found := IN_LAYER.search(module)) else module
    if ".experts." in module or any(_module(name).endswith(end) for name in others):
        return UnsupportedModelError(
            f"{adapter.path}: {tensor}: {module} is no linear layer; llmd applies adapters to those, not to experts, embeddings, "
            "the head or matrices for each head",
            hint="merge the adapter into the model, or train one whose target_modules leave it out",
        )
    return CheckpointError(
        f"the model has no module {module}",
        file=str(adapter.path),
        tensor=tensor,
        hint="the adapter is for another model: adapter_config.json names it as base_model_name_or_path",
    )


def _low_rank(adapter: Adapter, change: Change, weight: TensorRef) -> LowRank:
    """Return both matrices, with all rows of the second one."""
    outputs, inputs = weight.whole_shape[-2:]
    a = _matrix(adapter, change.a, (change.rank, inputs), change.rank, weight)
    b = _matrix(adapter, change.b, (outputs, change.rank), change.rank, weight)
    return LowRank(a, b, change.scale)


def _matrix(adapter: Adapter, stored: str, shape: tuple[int, int], rank: int, weight: TensorRef) -> TensorRef:
    found = adapter.entry(stored).shape
    if found != shape:
        raise CheckpointError(
            f"has shape {list(found)}, but rank {rank} and {weight.name} of shape "
            f"{list(weight.whole_shape)} need {list(shape)}",
            file=str(adapter.path),
            tensor=stored,
            hint="the adapter is for another model, or its configuration for another adapter",
        )
    dtype = adapter.entry(stored).dtype
    if dtype.lower() not in PLAIN_FORMATS:
        raise CheckpointError(
            f"has dtype {dtype}, an adapter must have F32, F16 or BF16",
            file=str(adapter.path),
            tensor=stored,
            hint="save the adapter in one of these dtypes",
        )
    return TensorRef(adapter.tensor(stored), shape)


def _adapted(op: Op, changes: Sequence[Changes]) -> Iterator[Op]:
    """Yield an op, followed by what adapters change of its outputs."""
    if not isinstance(op, Linear):
        yield op
        return
    factors = [tuple(_of_rows(one.get(ref.name), ref) for one in changes) for ref in op.weights]
    changed = [any(of_value) for of_value in factors]
    if not any(changed):
        yield op
        return
    values = tuple(
        out + WITHOUT_ADAPTER * is_changed for out, is_changed in zip(op.outs, changed, strict=True)
    )
    yield msgspec.structs.replace(op, outs=values)
    kept = [i for i, is_changed in enumerate(changed) if is_changed]
    yield Adapt(
        op.x,
        tuple(values[i] for i in kept),
        tuple(op.outs[i] for i in kept),
        tuple(factors[i] for i in kept),
    )


def _of_rows(change: LowRank | None, weight: TensorRef) -> LowRank | None:
    """Return a change of a whole matrix for the rows that a weight has of it."""
    if change is None:
        return None
    rows = msgspec.structs.replace(change.b, rows=weight.rows, period=weight.period)
    return msgspec.structs.replace(change, b=rows)
