"""The dispatches of a program's instructions, in phases between which there is a barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from llmd.api import (
    Activate,
    Add,
    Attention,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Glu,
    Head,
    Linear,
    Norm,
    Recurrence,
    Rope,
    SlottedOp,
)
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.ops.attention import attention
from llmd_backend_vulkan.ops.elementwise import activate, add, glu
from llmd_backend_vulkan.ops.embed import embed
from llmd_backend_vulkan.ops.encoder_attention import encoder_attention
from llmd_backend_vulkan.ops.linear import head, linear
from llmd_backend_vulkan.ops.norm import norm
from llmd_backend_vulkan.ops.recurrence import recurrence
from llmd_backend_vulkan.ops.rope import rope
from llmd_backend_vulkan.runtime import Dispatch

Phase = list[Dispatch]

_SINGLE: Mapping[str, Callable[[Context, SlottedOp], Dispatch]] = {
    Activate.kind: activate,
    Add.kind: add,
    EncoderAttention.kind: encoder_attention,
    Glu.kind: glu,
    Norm.kind: norm,
    Recurrence.kind: recurrence,
    Rope.kind: rope,
}
_MANY: Mapping[str, Callable[[Context, SlottedOp], Phase]] = {
    Embed.kind: embed,
    EmbedPosition.kind: embed,
    EmbedTokenType.kind: embed,
    Linear.kind: linear,
}


def body_phases(context: Context) -> list[Phase]:
    """Return the phases of all instructions but the head."""
    ops = [slotted for instruction in context.program.instructions for slotted in instruction.ops]
    return joined((slotted, _phases(context, slotted)) for slotted in ops if not isinstance(slotted.op, Head))


def head_phases(context: Context, logits: int, outputs: int) -> list[Phase]:
    """Return the phase of the head, for up to ``outputs`` output rows; ``logits`` is a place in ``work``."""
    ops = (slotted for instruction in context.program.instructions for slotted in instruction.ops)
    return [head(context, slotted, logits, outputs) for slotted in ops if isinstance(slotted.op, Head)]


def joined(ops: Iterable[tuple[SlottedOp, list[Phase]]]) -> list[Phase]:
    """Return the phases of ops; an op of one phase joins the last phase if it depends on no op there."""
    found: list[Phase] = []
    read: set[int] = set()
    written: set[int] = set()
    for slotted, phases in ops:
        reads, writes = set(slotted.inputs), set(slotted.outputs)
        depends = reads & written or writes & (read | written)
        if found and len(phases) == 1 and not depends:
            found[-1] = found[-1] + phases[0]
            read |= reads
            written |= writes
            continue
        found += phases
        # The last phase of an op with several may still read what its first one reads.
        read, written = reads, writes
    return found


def _phases(context: Context, slotted: SlottedOp) -> list[Phase]:
    kind = slotted.op.kind
    if kind == Attention.kind:
        return attention(context, slotted)
    return [_MANY[kind](context, slotted)] if kind in _MANY else [[_SINGLE[kind](context, slotted)]]
