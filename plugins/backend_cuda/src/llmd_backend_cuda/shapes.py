"""The shapes of a program's attention ops."""

from __future__ import annotations

from llmd.api import Attention, Program
from llmd_backend_cuda.attention_plan import AttentionShape
from llmd_backend_cuda.ops.attention import shape_of


def attention_shapes(program: Program) -> tuple[AttentionShape, ...]:
    """Return the distinct shapes, each of which has a plan in every step."""
    ops = (slotted.op for slotted in program.ops)
    found = (shape_of(op, program.groups[op.group]) for op in ops if isinstance(op, Attention))
    return tuple(dict.fromkeys(found))
