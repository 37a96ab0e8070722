"""The shapes of a program's attention ops."""

from __future__ import annotations

from llmd.api import Attention, Program
from llmd_backend_cuda.attention_plan import AttentionShape
from llmd_backend_cuda.ops.attention import slotted_shape


def attention_shapes(program: Program) -> tuple[AttentionShape, ...]:
    """Return the distinct shapes, each of which has a plan in every step."""
    ops = (slotted for slotted in program.ops if isinstance(slotted.op, Attention))
    found = (slotted_shape(program, slotted) for slotted in ops)
    return tuple(dict.fromkeys(found))
