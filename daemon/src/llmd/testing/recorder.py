"""A device that computes nothing and records all calls, so that a schedule becomes data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    OP_KINDS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    DeviceInfo,
    HiddenRef,
    HostHidden,
    KVDtype,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    Selection,
    Span,
    StageLimits,
    Step,
    StepResult,
    TensorSource,
    Ticket,
    WeightData,
)
from llmd.api.features import COLUMNS, LATENT, OWN_WEIGHTS, SHARED_KEYS, SINKS, STATE
from llmd.api.step import Float32, Int32, LateEdits


class RecordedStep(msgspec.Struct):
    """The arguments of one step."""

    step: Step
    hidden: Float32 | None
    selection: Selection | None
    masks: NDArray[np.uint32] | None = None
    """None if no masks were applied."""
    edits: LateEdits | None = None
    """None if no edits were applied late."""


class Recorder:
    """Implements `llmd.api.Device`, `LoadedWeights` and `Stage` in one, for one program and one stage.

    Results are zeros of the right shapes.
    """

    def __init__(self) -> None:
        self.info = DeviceInfo(
            name="recorder",
            kind="recorder",
            score=0,
            memory_bytes=1 << 40,
            formats=(*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS),
            kv_dtypes=KV_DTYPES,
            ops=OP_KINDS,
            reason="it only records",
            features=(COLUMNS, LATENT, OWN_WEIGHTS, SHARED_KEYS, SINKS, STATE),
        )
        self.weights: list[WeightData] = []
        self.stored_blocks: list[NDArray[np.uint8] | None] = []
        self.steps: list[RecordedStep] = []
        self.blocks: dict[int, int] = {}
        self.program: Program
        self.limits: StageLimits

    def check(self, program: Program) -> list[Refusal]:
        return []

    def read_rate(self, budget_s: float) -> float:
        return 1.0

    def free_bytes(self) -> int:
        return self.info.memory_bytes

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> Recorder:
        self.program = program
        self.weights = [tensors.read(weight) for weight in program.weights]
        self.stored_blocks = [tensors.stored_blocks(weight) for weight in program.weights]
        return self

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return 1

    def step_bytes(self, limits: StageLimits) -> int:
        return 0

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> Recorder:
        self.blocks = dict(blocks)
        self.limits = limits
        return self

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        self.steps.append(RecordedStep(step, None if hidden is None else hidden.host(), selection))
        return Ticket(len(self.steps) - 1)

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        self.steps[ticket].edits = edits

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        self.steps[ticket].masks = masks

    def hidden(self, ticket: Ticket) -> HiddenRef:
        rows = self.steps[ticket].step.num_rows
        return HostHidden(np.zeros((rows, self.program.output_size), np.float32))

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        raise NotImplementedError("it keeps no taps")

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        raise NotImplementedError("it keeps no times")

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        selection = self.steps[ticket].selection
        assert selection is not None, "only a stage with the head has candidates"
        count = selection.num_rows
        kept = min(self.limits.num_candidates, self.program.vocab_size)
        return StepResult(
            ids=np.zeros((count, kept), np.int32),
            edited=np.zeros((count, kept), np.float32),
            raw=np.zeros((count, kept), np.float32),
            raw_logsumexp=np.zeros(count, np.float32),
            edited_logsumexp=np.zeros(count, np.float32),
            edited_entropy=np.zeros(count, np.float32),
            edited_deviation=np.zeros(count, np.float32),
            num_allowed=np.full(count, self.program.vocab_size, np.int32),
            target_raw=np.zeros(count, np.float32),
            top_ids=np.zeros((count, selection.raw_top), np.int32),
            top_raw=np.zeros((count, selection.raw_top), np.float32),
            tokens=None if selection.draws is None else np.zeros(count, np.int32),
        )

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        return np.zeros((len(outputs), self.program.vocab_size), np.float32)

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        return self.rows(ticket, outputs)

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        raise NotImplementedError("it keeps no blocks")

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        raise NotImplementedError("it keeps no blocks")

    def release(self, ticket: Ticket) -> None:
        """Keep what was recorded."""

    def close(self) -> None:
        """Keep what was recorded."""
