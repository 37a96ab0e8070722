"""The bytes that every stage needs for its steps."""

from __future__ import annotations

from llmd.api.device import StageLimits
from llmd.api.program import Program

FLOAT_BYTES = 4


def step_buffer_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of float32 buffers for the slots of one step and the results of every ticket.

    Results are hidden states, or the raw and the edited logits of output rows. Padding, scratch and the few
    bytes of candidates are left out.
    """
    slots = limits.max_rows * sum(program.slot_widths)
    if program.has_head:
        results = limits.max_outputs * 2 * program.vocab_size
    else:
        results = limits.max_rows * program.output_size
    return FLOAT_BYTES * (slots + limits.tickets * results)
