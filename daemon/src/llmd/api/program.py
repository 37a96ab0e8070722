"""The input of a device: a range of parts, lowered to buffer slots, weights and fused instructions."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from llmd.api.ops import EmbedTokenType, Op, RopeTable
from llmd.api.plan import KVGroup
from llmd.api.tensors import Weight

Pattern = tuple[str, ...]
"""A sequence of op kinds that a device runs as one kernel, for example ``("norm", "linear")``."""


ActivationDtype = Literal["int8", "f32"]
"""Type of the rows that are multiplied by weights in integer formats: rounded to int8 in groups, or
float32."""

ACTIVATION_DTYPES: tuple[ActivationDtype, ...] = get_args(ActivationDtype)
"""All values of `ActivationDtype`."""


class SlottedOp(msgspec.Struct, frozen=True):
    """An op whose values are buffer slots."""

    op: Op
    inputs: tuple[int, ...]
    """Slots of ``op.reads``, in that order."""
    outputs: tuple[int, ...]
    """Slots of ``op.writes``, in that order."""
    weights: tuple[int | None, ...] = ()
    """Indices into `Program.weights` of ``op.tensors``, in that order; None for a missing optional tensor."""
    rope: int | None = None
    """Index into `Program.ropes`."""
    kv_layer: int | None = None
    """Index of the layer among the layers of its KV group *on this device*, from 0."""


class Instruction(msgspec.Struct, frozen=True):
    """One kernel: a single op, or the ops of one of the device's patterns, in order.

    In a fused instruction, only the next op reads the output of an op.
    """

    ops: tuple[SlottedOp, ...]

    @property
    def pattern(self) -> Pattern:
        """Kinds of the ops, in order."""
        return tuple(slotted.op.kind for slotted in self.ops)


class Program(msgspec.Struct, frozen=True):
    """The parts ``[first_part, last_part)`` of a plan, ready for one device."""

    first_part: int
    last_part: int
    hidden_size: int
    """Elements of a row between stages."""
    vocab_size: int
    """Number of token ids."""
    context_len: int
    """Context window in tokens."""
    groups: tuple[KVGroup, ...]
    """All groups of the plan, each with only the layers of this range; a group with no layer needs no
    pool."""
    instructions: tuple[Instruction, ...]
    """Run in order. An instruction does not write a slot that it reads."""
    slot_widths: tuple[int, ...]
    """Float32 elements per row of each buffer slot."""
    weights: tuple[Weight, ...]
    """Weights that the ops refer to by index."""
    ropes: tuple[RopeTable, ...]
    """Rotation tables that the ops refer to by index."""
    hidden_in: int | None
    """Slot that receives the rows of the previous stage; None: the program begins with the embedding."""
    hidden_out: int | None
    """Slot that is the output, for the next stage or for pooling; None: the program ends with the head."""
    activations: ActivationDtype = "int8"
    """Type of the rows that are multiplied by weights in integer formats."""
    needs: tuple[str, ...] = ()
    """Features that a device must support to run it (`llmd.api.features`)."""

    @property
    def output_size(self) -> int:
        """Elements of an output row; 0 if the program ends with the head."""
        return 0 if self.hidden_out is None else self.slot_widths[self.hidden_out]

    @property
    def num_token_types(self) -> int:
        """Number of token types that the embedding distinguishes; 1 if it has no table for them."""
        ops = (slotted.op for instruction in self.instructions for slotted in instruction.ops)
        return next((op.table.view_shape[0] for op in ops if isinstance(op, EmbedTokenType)), 1)

    @property
    def has_head(self) -> bool:
        """Whether the program ends with the head, and so returns candidates."""
        return self.hidden_out is None
