"""A null device whose speed is known, by the roofline of its two limits.

Weights, and keys and values, take as long as they are read or as they are computed with, whichever takes
longer (Williams, Waterman and Patterson, "Roofline", 2009). The planner has other rules
(`llmd.placement.seconds`), so that its predictions can be compared with what such a device takes.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from msgspec import structs

from llmd.api import Program, Step
from llmd.api.features import STREAMS
from llmd.placement.overlap import BusyTimes
from llmd.placement.work import ExpertWeights, Span, Work, work_of
from llmd.testing.null_device import Clock, NullDevice, Pause


class Speed(msgspec.Struct, frozen=True):
    """What a device takes for its steps."""

    bytes_per_s: float
    """Bytes of weights, keys and values that are read per second."""
    flops: float
    """Operations per second of products with weights; a multiply-add counts as two."""
    attention_flops: float
    """Operations per second of attention."""
    step_s: float = 0.0
    """Seconds that a step takes, whatever it computes."""
    part_s: float = 0.0
    """Seconds that each part of a layer takes in addition."""
    copy_bytes_per_s: float = math.inf
    """Bytes of hidden states per second that are copied to the device or back."""


class ThrottledDevice(NullDevice):
    """A null device that takes as long for a step as its speed says."""

    def __init__(
        self, clock: Clock, pause: Pause, speed: Speed, *, name: str = "null", memory_bytes: int = 1 << 30
    ) -> None:
        super().__init__(clock, step_s=self._step_seconds, pause=pause, name=name, memory_bytes=memory_bytes)
        # The seconds of streamed weights are not known.
        self.info = structs.replace(
            self.info, features=tuple(name for name in self.info.features if name != STREAMS)
        )
        self.speed = speed
        self._works: dict[int, tuple[Program, Work]] = {}
        self._busy = BusyTimes()

    def read_rate(self, budget_s: float) -> float:
        return self.speed.bytes_per_s

    def begin(self, earliest_s: float, seconds: float) -> float:
        """Return when no other stage computes, from a time on: all share the device."""
        self._busy.forget(self.clock())
        return self._busy.reserve(earliest_s, seconds)

    def _step_seconds(self, program: Program, step: Step) -> float:
        # Counting takes longer than some steps. The program is kept, so that no other one gets its id.
        _, work = self._works.setdefault(id(program), (program, work_of(program, "f16")))
        return step_seconds(self.speed, work, step) + self._copy_seconds(program, step.num_rows)

    def _copy_seconds(self, program: Program, rows: int) -> float:
        """Return the seconds of copying float32 hidden states to the device, and back."""
        copies = (program.hidden_in is not None) + (program.hidden_out is not None)
        return 4 * program.hidden_size * rows * copies / self.speed.copy_bytes_per_s


def step_seconds(speed: Speed, work: Work, step: Step) -> float:
    """Return the seconds of a step, without copies of hidden states."""
    sequences = len(step.row_offsets) - 1
    seconds = speed.step_s + work.num_parts * speed.part_s
    for rows, formats in ((step.num_rows, work.layers), (sequences, work.head)):
        for one in formats.values():
            seconds += max(one.num_bytes / speed.bytes_per_s, 2.0 * rows * one.elements / speed.flops)
    seconds += sum(_expert_seconds(speed, one, step.num_rows) for one in work.experts)
    seconds += sequences * work.state_bytes / speed.bytes_per_s
    return seconds + sum(_attention_seconds(speed, span, step) for span in work.spans)


def _expert_seconds(speed: Speed, one: ExpertWeights, rows: int) -> float:
    """Return the seconds of experts: those that some row is expected to use are read, and each row is
    multiplied by its own.
    """
    read_s = one.whole.num_bytes * one.share(rows) / speed.bytes_per_s
    return max(read_s, 2.0 * rows * one.whole.elements * one.top_k / one.num_experts / speed.flops)


def _attention_seconds(speed: Speed, span: Span, step: Step) -> float:
    """Return the seconds of attention: keys are read once a sequence, and each row sees those before it."""
    most = span.window or np.inf
    lengths = step.positions[step.row_offsets[1:] - 1] + 1
    read = np.minimum(lengths, most).sum() * span.num_bytes
    computed = np.minimum(step.positions + 1, most).sum() * span.flops
    return float(max(read / speed.bytes_per_s, computed / speed.attention_flops))
