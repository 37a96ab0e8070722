"""Counters of the work that an engine has done since it was loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from llmd.engine.step_reads import KVReads
from llmd.scheduler.chunk import StepPlan


class Counters(msgspec.Struct):
    """Fields as in `llmd.api.reports.Report`; times are in seconds."""

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    decode_steps: int = 0
    decode_rows: int = 0
    decode_kv_bytes: int = 0
    single_steps: int = 0
    single_s: float = 0.0
    timed_steps: int = 0
    stages_s: tuple[float, ...] = ()
    last_done: float = msgspec.field(default_factory=time.perf_counter)
    """When the last step ended, or the last idle time."""

    def begin(self) -> None:
        """End an idle time, so that it does not count for the next step."""
        self.last_done = time.perf_counter()

    def placed(self) -> None:
        """Begin to count the times of stages, which are other ones now."""
        self.timed_steps, self.stages_s = 0, ()

    def count(
        self,
        plan: StepPlan,
        num_tokens: int,
        reads: KVReads,
        stages_s: Callable[[], tuple[float, ...]] = tuple,
    ) -> None:
        """Count a finished step; any prefill in it makes its time count as prefill time.

        ``stages_s`` returns the seconds that each stage took; empty: not known.
        """
        prefill = sum(c.count for c in plan.chunks if c.start < c.sequence.prompt_len)
        self.cached_tokens += sum(cached for _, cached in plan.started)
        self.output_tokens += num_tokens
        if prefill:
            self.count_prefill(prefill)
        else:
            self.steps += 1
            self.decode_steps += 1
            self.decode_kv_bytes += reads.of_rows([chunk.start + chunk.count for chunk in plan.chunks])
            passed_s = self._passed()
            self.decode_s += passed_s
            rows = sum(chunk.count for chunk in plan.chunks)
            self.decode_rows += rows
            if rows == 1:
                self.single_steps += 1
                self.single_s += passed_s
                self._count_stages(stages_s())

    def count_prefill(self, num_tokens: int) -> None:
        """Count a step that computed ``num_tokens`` prompt tokens."""
        self.steps += 1
        self.prompt_tokens += num_tokens
        self.prefill_s += self._passed()

    def _count_stages(self, stages_s: tuple[float, ...]) -> None:
        if stages_s:
            before = self.stages_s or (0.0,) * len(stages_s)
            self.stages_s = tuple(map(sum, zip(before, stages_s, strict=True)))
            self.timed_steps += 1

    def _passed(self) -> float:
        """Return the seconds since the previous step or the end of the last idle time."""
        now = time.perf_counter()
        passed, self.last_done = now - self.last_done, now
        return passed
