"""What lowering hands to a device: a part range with buffer slots, weights and fused instructions."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from llmd.api.ops import EmbedTokenType, Op, RopeTable
from llmd.api.plan import KVGroup
from llmd.api.tensors import Weight

Pattern = tuple[str, ...]
"""Op kinds in sequence that a device runs as one kernel, for example ``("norm", "linear")``."""


ActivationDtype = Literal["int8", "f32"]
"""How the rows are held that weights in integer formats multiply: rounded to int8 in groups, or as they are."""

ACTIVATION_DTYPES: tuple[ActivationDtype, ...] = get_args(ActivationDtype)


class SlottedOp(msgspec.Struct, frozen=True):
    """An op whose values are buffer slots.

    ``inputs`` and ``outputs`` follow the order of ``op.reads`` and ``op.writes``; ``weights`` follows
    ``op.tensors`` with an index into `Program.weights`, or None where the op has no such tensor.
    ``rope`` is an index into `Program.ropes`; ``kv_layer`` is the layer's index inside its KV group *on this
    device* (0 for the group's first layer in this program).
    """

    op: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: tuple[int | None, ...] = ()
    rope: int | None = None
    kv_layer: int | None = None


class Instruction(msgspec.Struct, frozen=True):
    """One kernel: a single op, or the ops of one of the device's patterns in order.

    Inside a fused instruction only the next op reads what an op writes.
    """

    ops: tuple[SlottedOp, ...]

    @property
    def pattern(self) -> Pattern:
        """Kinds of its ops in order."""
        return tuple(slotted.op.kind for slotted in self.ops)


class Program(msgspec.Struct, frozen=True):
    """The parts ``[first_part, last_part)`` of a plan, ready for one device.

    ``slot_widths[s]`` is the number of float32 elements a row has in buffer slot ``s``; an instruction never
    writes a slot that it reads. ``hidden_in`` is the slot that receives the previous stage's rows (None where
    the program begins with the embedding); ``hidden_out`` the slot that the next stage reads, or whoever embeds with a
    model without a head (None where the program ends with the head). ``groups`` are all groups of the plan, with ``layers`` cut to this range:
    a group that has no layer here has an empty tuple and needs no pool. ``activations`` matters to weights in integer formats alone.
    """

    first_part: int
    last_part: int
    hidden_size: int
    vocab_size: int
    context_len: int
    groups: tuple[KVGroup, ...]
    instructions: tuple[Instruction, ...]
    slot_widths: tuple[int, ...]
    weights: tuple[Weight, ...]
    ropes: tuple[RopeTable, ...]
    hidden_in: int | None
    hidden_out: int | None
    activations: ActivationDtype = "int8"

    @property
    def output_size(self) -> int:
        """Elements of a row that leaves; 0 where the program ends with the head."""
        return 0 if self.hidden_out is None else self.slot_widths[self.hidden_out]

    @property
    def num_token_types(self) -> int:
        """Token types that its embedding tells apart; 1 where it has no table of them."""
        ops = (slotted.op for instruction in self.instructions for slotted in instruction.ops)
        return next((op.table.view_shape[0] for op in ops if isinstance(op, EmbedTokenType)), 1)

    @property
    def has_head(self) -> bool:
        """Whether it ends with the head, and so returns candidates."""
        return self.hidden_out is None
