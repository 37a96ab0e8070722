"""Find in which tensors a checkpoint stores the weights of experts, and change a plan accordingly.

Hubs have a tensor for each matrix of each expert, or one for all gates and up matrices of a layer, as the
family was published. Transformers 5 can save every family in the second way.

Source of its names: ``conversion_mapping.py`` of github.com/huggingface/transformers.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

import msgspec

from llmd.api.expert_ops import Experts, Router
from llmd.api.ops import Op
from llmd.api.plan import ModelPlan
from llmd.api.tensors import TensorRef

BLOCKS = ("mlp", "block_sparse_moe")
"""Names of the module of a layer that has experts."""
ROUTERS = ("gate", "router", "router.layer")
"""Names of the router in it."""
IN_LAYER = re.compile(r".*?layers\.\d+\.")

Matrices = tuple[TensorRef, TensorRef, TensorRef]
"""The stacks of gates, of up and of down matrices."""


def with_stored_experts(plan: ModelPlan, stored: Container[str]) -> ModelPlan:
    """Return the plan with experts and routers as a checkpoint with the tensors ``stored`` has them.

    What the checkpoint has under no known name stays.
    """
    parts = tuple(
        msgspec.structs.replace(part, ops=tuple(_changed(op, stored) for op in part.ops))
        for part in plan.parts
    )
    return plan if parts == plan.parts else msgspec.structs.replace(plan, parts=parts)


def _changed(op: Op, stored: Container[str]) -> Op:
    if isinstance(op, Router) and op.weight.name not in stored:
        return _named(op, stored)
    if (
        isinstance(op, Experts)
        and op.gate is not None
        and op.gate_bias is None
        and op.gate.name not in stored
    ):
        return _found(op, op.gate, stored)
    return op


def _named(router: Router, stored: Container[str]) -> Op:
    modules = _modules(router.weight.name)
    names = (f"{module}.{name}.weight" for module in modules for name in ROUTERS)
    name = next((name for name in names if name in stored), router.weight.name)
    return msgspec.structs.replace(router, weight=msgspec.structs.replace(router.weight, name=name))


def _found(op: Experts, gate: TensorRef, stored: Container[str]) -> Op:
    for module in _modules(gate.name):
        for make in (_fused, _separate):
            refs = make(f"{module}.experts", op)
            if all(ref.name in stored for ref in refs):
                gate, up, down = refs
                return msgspec.structs.replace(op, gate=gate, up=up, down=down)
    return op


def _modules(name: str) -> Iterator[str]:
    """Yield the possible names of the module with the experts of the layer of a tensor."""
    layer = IN_LAYER.match(name)
    return (f"{layer[0]}{block}" for block in BLOCKS if layer)


def _fused(module: str, op: Experts) -> Matrices:
    """Return the stacks if one tensor has the rows of gates, then those of up matrices."""
    count, hidden, inner = op.down.view_shape
    name, shape = f"{module}.gate_up_proj", (count, 2 * inner, hidden)
    return (
        TensorRef(name, shape, rows=(0, inner), is_stack=True),
        TensorRef(name, shape, rows=(inner, 2 * inner), is_stack=True),
        TensorRef(f"{module}.down_proj", (count, hidden, inner), is_stack=True),
    )


def _separate(module: str, op: Experts) -> Matrices:
    """Return the stacks if each expert has three tensors."""
    count, hidden, inner = op.down.view_shape
    return (
        TensorRef(f"{module}.*.gate_proj.weight", (count, inner, hidden), is_stack=True),
        TensorRef(f"{module}.*.up_proj.weight", (count, inner, hidden), is_stack=True),
        TensorRef(f"{module}.*.down_proj.weight", (count, hidden, inner), is_stack=True),
    )
