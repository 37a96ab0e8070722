"""The bytes that every stage needs for its steps."""

from __future__ import annotations

from llmd.api.device import StageLimits
from llmd.api.expert_ops import Experts
from llmd.api.latent_ops import HeadLinear
from llmd.api.program import Program
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.api.time_mix_ops import GeneralizedDelta

FLOAT_BYTES = 4
_WithRows = Experts | GatedDelta | StateSpace | GeneralizedDelta | HeadLinear
"""Ops that turn rows into something else before they compute."""
_SHARING: tuple[tuple[type[_WithRows], ...], ...] = (
    (Experts,),
    (GatedDelta, StateSpace, GeneralizedDelta),
    (HeadLinear,),
)
"""Kinds of ops that use the same buffers one after the other."""


def step_buffer_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of float32 buffers for the slots of one step, what experts, states and heads make of
    rows, and the results of every ticket.

    Results are hidden states, or the raw and the edited logits of output rows. Padding, other scratch and the
    few bytes of candidates are left out.
    """
    of_ops = sum(_most_elements(program, *kinds) for kinds in _SHARING)
    slots = limits.max_rows * (sum(program.slot_widths) + of_ops)
    if program.has_head:
        results = limits.max_outputs * 2 * program.vocab_size
    else:
        results = limits.max_rows * program.output_size
    return FLOAT_BYTES * (slots + limits.tickets * results)


def _most_elements(program: Program, *kinds: type[_WithRows]) -> int:
    """Return the elements that a row takes in the op of these kinds that takes the most."""
    return max((one.op.row_elements for one in program.ops if isinstance(one.op, kinds)), default=0)
