"""The dispatches of a program's instructions, in phases between which there is a barrier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from llmd.api import (
    Activate,
    Adapt,
    Add,
    Attention,
    CollapseStreams,
    Compress,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Experts,
    Gate,
    GatedDelta,
    GeneralizedDelta,
    Glu,
    Head,
    HeadLinear,
    Indexer,
    Instruction,
    Join,
    Linear,
    MergeAttention,
    MixStreams,
    Multiply,
    Norm,
    Recurrence,
    Rope,
    Router,
    SlottedOp,
    StateSpace,
    StreamWeights,
    TokenShift,
)
from llmd.api.adapter_items import without_adapters
from llmd_backend_vulkan.commands import Dispatch
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.ops.adapt import adapt
from llmd_backend_vulkan.ops.attention import attention, rotated_attention
from llmd_backend_vulkan.ops.compress import compress
from llmd_backend_vulkan.ops.elementwise import activate, add, gate, glu, multiply
from llmd_backend_vulkan.ops.embed import embed
from llmd_backend_vulkan.ops.encoder_attention import encoder_attention
from llmd_backend_vulkan.ops.experts import experts
from llmd_backend_vulkan.ops.gated_delta import gated_delta
from llmd_backend_vulkan.ops.head_linear import head_linear
from llmd_backend_vulkan.ops.indexer import indexer
from llmd_backend_vulkan.ops.join import join
from llmd_backend_vulkan.ops.linear import head, linear, linear_and_add
from llmd_backend_vulkan.ops.merge_attention import merge_attention
from llmd_backend_vulkan.ops.norm import norm
from llmd_backend_vulkan.ops.recurrence import recurrence
from llmd_backend_vulkan.ops.rope import rope
from llmd_backend_vulkan.ops.router import router
from llmd_backend_vulkan.ops.state_space import state_space
from llmd_backend_vulkan.ops.streams import collapse_streams, mix_streams, stream_weights
from llmd_backend_vulkan.ops.time_mix import generalized_delta, token_shift

Phase = list[Dispatch]

_SINGLE: Mapping[str, Callable[[Context, SlottedOp], Dispatch]] = {
    Activate.kind: activate,
    Add.kind: add,
    CollapseStreams.kind: collapse_streams,
    EncoderAttention.kind: encoder_attention,
    Gate.kind: gate,
    Glu.kind: glu,
    Join.kind: join,
    MergeAttention.kind: merge_attention,
    MixStreams.kind: mix_streams,
    Multiply.kind: multiply,
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
_PHASES: Mapping[str, Callable[[Context, SlottedOp], list[Phase]]] = {
    Adapt.kind: adapt,
    Attention.kind: attention,
    Compress.kind: compress,
    Experts.kind: experts,
    GatedDelta.kind: gated_delta,
    GeneralizedDelta.kind: generalized_delta,
    HeadLinear.kind: head_linear,
    Indexer.kind: indexer,
    Router.kind: router,
    StateSpace.kind: state_space,
    StreamWeights.kind: stream_weights,
    TokenShift.kind: token_shift,
}
COMPUTED = frozenset({*_SINGLE, *_MANY, *_PHASES, Head.kind})
"""Kinds of ops that have kernels."""

PATTERNS = (("linear", "add"), ("linear", "adapt", "add"), ("rope", "rope", "attention"))
"""Sequences of ops that have fewer phases together; those with adapters only in steps without any."""


def body_phases(context: Context, apart: Collection[int] = ()) -> list[tuple[int | None, list[Phase]]]:
    """Return the phases of all instructions but the head: those of each part in ``apart``, and all others.

    Each element of the list has a part, or None, and phases; they run in order.
    """

    def part_of(instruction: Instruction) -> int | None:
        return instruction.part if instruction.part in apart else None

    return [
        (part, joined(pair for instruction in run for pair in _of_instruction(context, instruction)))
        for part, run in itertools.groupby(context.program.instructions, key=part_of)
    ]


def head_phases(context: Context, logits: int, outputs: int) -> list[Phase]:
    """Return the phase of the head, for up to ``outputs`` output rows; ``logits`` is a place in ``work``."""
    ops = context.program.ops
    return [head(context, slotted, logits, outputs) for slotted in ops if isinstance(slotted.op, Head)]


class Uses(msgspec.Struct, frozen=True):
    """The slots of some phases."""

    reads: frozenset[int]
    writes: frozenset[int]

    @classmethod
    def of(cls, *ops: SlottedOp) -> Uses:
        """Return all slots of ops."""
        return cls(
            frozenset(slot for one in ops for slot in one.inputs),
            frozenset(slot for one in ops for slot in one.outputs),
        )


def joined(items: Iterable[tuple[Uses, list[Phase]]]) -> list[Phase]:
    """Return the phases of items; one of a single phase joins the last if it depends on nothing there."""
    found: list[Phase] = []
    read: set[int] = set()
    written: set[int] = set()
    for uses, phases in items:
        depends = uses.reads & written or uses.writes & (read | written)
        if found and len(phases) == 1 and not depends:
            found[-1] = found[-1] + phases[0]
            read |= uses.reads
            written |= uses.writes
            continue
        found += phases
        # The last phase of an item with several may still read what its first one reads.
        read, written = set(uses.reads), set(uses.writes)
    return found


def _of_instruction(context: Context, whole: Instruction) -> Iterator[tuple[Uses, list[Phase]]]:
    instruction = whole if context.adapted else without_adapters(whole)
    ops = instruction.ops
    if instruction.pattern == ("rope", "rope", "attention"):
        yield Uses.of(*ops), rotated_attention(context, instruction)
    elif instruction.pattern == ("linear", "add") and add_is_fused(instruction):
        yield Uses.of(*ops), [linear_and_add(context, *ops)]
    else:
        for slotted in ops:
            if not isinstance(slotted.op, Head):
                yield Uses.of(slotted), _of_op(context, slotted)


def add_is_fused(instruction: Instruction) -> bool:
    """Return whether an add alone reads the product before it, as what is scaled and added."""
    product, add_op = instruction.ops
    slot = product.outputs[0]
    alone = len(product.outputs) == 1 and slot not in instruction.outputs
    return alone and add_op.inputs[1] == slot and add_op.inputs[0] != slot


def _of_op(context: Context, slotted: SlottedOp) -> list[Phase]:
    kind = slotted.op.kind
    if kind in _PHASES:
        return _PHASES[kind](context, slotted)
    return [_MANY[kind](context, slotted)] if kind in _MANY else [[_SINGLE[kind](context, slotted)]]
