"""The bytes that every stage needs for its steps."""

from __future__ import annotations

from llmd.api.device import StageLimits
from llmd.api.expert_ops import Experts
from llmd.api.latent_ops import HeadLinear
from llmd.api.program import Program
from llmd.api.state_ops import GatedDelta, StateSpace

FLOAT_BYTES = 4


def step_buffer_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of float32 buffers for the slots of one step, what experts, states and heads make of
    rows, and the results of every ticket.

    Results are hidden states, or the raw and the edited logits of output rows. Padding, other scratch and the
    few bytes of candidates are left out.
    """
    of_ops = _expert_elements(program) + _state_elements(program) + _head_elements(program)
    slots = limits.max_rows * (sum(program.slot_widths) + of_ops)
    if program.has_head:
        results = limits.max_outputs * 2 * program.vocab_size
    else:
        results = limits.max_rows * program.output_size
    return FLOAT_BYTES * (slots + limits.tickets * results)


def _expert_elements(program: Program) -> int:
    """Return the elements that a row takes for its experts, in the mixture that takes the most: what enters
    and leaves each expert, and what its gate and up matrices make.
    """
    ops = (slotted.op for slotted in program.ops)
    mixtures = (op for op in ops if isinstance(op, Experts))
    return max((op.top_k * 2 * sum(op.down.view_shape[1:]) for op in mixtures), default=0)


def _state_elements(program: Program) -> int:
    """Return the elements that a row takes in the layer with matrices as states that takes the most."""
    ops = (slotted.op for slotted in program.ops)
    return max((op.row_elements for op in ops if isinstance(op, GatedDelta | StateSpace)), default=0)


def _head_elements(program: Program) -> int:
    """Return the elements that a row takes in the op with a matrix for each head that takes the most."""
    ops = (slotted.op for slotted in program.ops)
    return max((op.row_elements for op in ops if isinstance(op, HeadLinear)), default=0)
