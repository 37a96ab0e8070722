"""The input of a device: a range of parts, lowered to buffer slots, weights and fused instructions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from llmd.api.ops import EmbedTokenType, Op, RopeTable
from llmd.api.plan import KVGroup
from llmd.api.tensors import Weight

Pattern = tuple[str, ...]
"""A sequence of op kinds that a device runs as one kernel, for example ``("norm", "linear")``."""


ActivationDtype = Literal["int8", "f32", "f16", "bf16"]
"""Type of the rows that are multiplied by weights in integer formats. ``int8`` rounds in groups, ``f16`` and
``bf16`` round each element to nearest even, ``f32`` does not round."""

ACTIVATION_DTYPES: tuple[ActivationDtype, ...] = get_args(ActivationDtype)
"""All values of `ActivationDtype`."""

Precision = Literal["f32", "f16", "bf16"]
"""Type of the rows that are multiplied by plain weights, keys and values. ``f16`` and ``bf16`` round each
element to nearest even, ``f32`` does not round."""

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""All values of `Precision`."""


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
    """One kernel: a single op, or consecutive ops whose kinds are one of the device's patterns.

    Fused ops may belong to several parts. With an edge from each op to the ops of the instruction that read
    what it writes, they are a connected graph. Equal slots within an instruction are equal values, so the
    slots show which op reads what; but an output of `llmd.api.adapter_ops.Adapt` may be in the slot of the
    value that it changes, which no later op of the instruction reads.
    """

    ops: tuple[SlottedOp, ...]
    """In order of the plan."""
    part: int
    """Index in the plan's parts of the part that the first op belongs to."""
    outputs: tuple[int, ...]
    """Slots that a later instruction, the next stage, pooling or a tap reads: the kernel must write them. The
    other slots that its ops write are used within the instruction only, and need not be written."""

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
    """Run in order. The slots that an instruction writes are distinct, and it reads no earlier value from
    them; but an output of `llmd.api.adapter_ops.Adapt` may be in the slot of the value that it changes."""
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
    precision: Precision = "f32"
    """Type of the rows that are multiplied by plain weights, and of the queries and attention weights that
    are multiplied by keys and values. Equal to ``activations``, unless those are ``int8``."""
    needs: tuple[str, ...] = ()
    """Features that a device must support to run it (`llmd.api.features`)."""
    taps: tuple[int, ...] = ()
    """Indices of parts after which the hidden states of all rows are kept for `Stage.tap`, ascending."""
    tap_slots: tuple[int, ...] = ()
    """The slot of each tap. No later instruction writes it."""
    streamed: tuple[int, ...] = ()
    """Indices of parts whose weights stay in main memory, ascending (`llmd.api.streaming`)."""
    expert_bytes: int | None = None
    """Most bytes of memory for the matrices of experts: a device with the feature `EXPERT_CACHE` reads those
    that do not fit when a step uses them, and gives back the least recently used ones. Results have the same
    bits. None: all are in memory."""

    @property
    def ops(self) -> Iterator[SlottedOp]:
        """The ops of all instructions, in order."""
        return (slotted for instruction in self.instructions for slotted in instruction.ops)

    @property
    def output_size(self) -> int:
        """Elements of an output row; 0 if the program ends with the head."""
        return 0 if self.hidden_out is None else self.slot_widths[self.hidden_out]

    @property
    def num_token_types(self) -> int:
        """Number of token types that the embedding distinguishes; 1 if it has no table for them."""
        ops = (slotted.op for slotted in self.ops)
        return next((op.table.view_shape[0] for op in ops if isinstance(op, EmbedTokenType)), 1)

    @property
    def has_head(self) -> bool:
        """Whether the program ends with the head, and so returns candidates."""
        return self.hidden_out is None
