"""The arrays for the results of a step, allocated once per ticket of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from llmd.api import MAX_RAW_TOP, Program, StageLimits, StepResult
from llmd.api.step import Float32, Int32


@dataclass(frozen=True)
class TicketArrays:
    """The arguments of the native ``add_ticket``. Pages that are never touched cost no memory."""

    hidden: Float32
    raw: Float32
    edited: Float32
    ids: Int32
    edited_values: Float32
    raw_values: Float32
    raw_logsumexp: Float32
    edited_logsumexp: Float32
    edited_entropy: Float32
    edited_deviation: Float32
    num_allowed: Int32
    target_raw: Float32
    top_ids: Int32
    top_raw: Float32

    @classmethod
    def allocate(cls, program: Program, limits: StageLimits) -> Self:
        """Allocate arrays for the results of a program's last op: hidden states, or logits and candidates."""
        outputs = limits.max_outputs if program.has_head else 0
        rows = 0 if program.has_head else limits.max_rows
        candidates = min(limits.num_candidates, program.vocab_size)

        def floats(*shape: int) -> Float32:
            return np.empty(shape, np.float32)

        return cls(
            hidden=floats(rows, program.output_size),
            raw=floats(outputs, program.vocab_size),
            edited=floats(outputs, program.vocab_size),
            ids=np.empty(outputs * candidates, np.int32),
            edited_values=floats(outputs * candidates),
            raw_values=floats(outputs * candidates),
            raw_logsumexp=floats(outputs),
            edited_logsumexp=floats(outputs),
            edited_entropy=floats(outputs),
            edited_deviation=floats(outputs),
            num_allowed=np.empty(outputs, np.int32),
            target_raw=floats(outputs),
            top_ids=np.empty(outputs * MAX_RAW_TOP, np.int32),
            top_raw=floats(outputs * MAX_RAW_TOP),
        )

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in vars(self).values())

    def result(self, outputs: int, candidates: int, raw_top: int) -> StepResult:
        """Return views of the first ``outputs`` rows."""
        return StepResult(
            ids=self.ids[: outputs * candidates].reshape(outputs, candidates),
            edited=self.edited_values[: outputs * candidates].reshape(outputs, candidates),
            raw=self.raw_values[: outputs * candidates].reshape(outputs, candidates),
            raw_logsumexp=self.raw_logsumexp[:outputs],
            edited_logsumexp=self.edited_logsumexp[:outputs],
            edited_entropy=self.edited_entropy[:outputs],
            edited_deviation=self.edited_deviation[:outputs],
            num_allowed=self.num_allowed[:outputs],
            target_raw=self.target_raw[:outputs],
            top_ids=self.top_ids[: outputs * raw_top].reshape(outputs, raw_top),
            top_raw=self.top_raw[: outputs * raw_top].reshape(outputs, raw_top),
        )
