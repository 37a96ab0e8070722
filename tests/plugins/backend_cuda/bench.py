"""A stage of the small model on a simulated card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    HiddenRef,
    HostHidden,
    LateEdits,
    ModelPlan,
    Selection,
    StageLimits,
    Step,
    TensorSource,
)
from llmd.api.step import Float32
from llmd.testing.plans import TinyModel
from tests.cuda.simulated import SimulatedCard, load, lowered, step_of
from tests.plugins.backend_cpu.workbench import random_rows, select

MODEL = TinyModel(layers=2)
"""KV group 0 has full attention, group 1 a window of 20 tokens."""
PLAN = MODEL.plan()
LIMITS = StageLimits(max_rows=20, max_sequences=3, max_outputs=20)
WORDS = -(-MODEL.vocab // 32)
"""Of the mask of a row."""
FIRST = np.zeros(1, np.int32)
"""The first output row, or block 0."""


class Bench:
    """A stage, and the weights that it uses."""

    def __init__(
        self,
        card: SimulatedCard | None = None,
        first: int = 0,
        last: int | None = None,
        *,
        plan: ModelPlan = PLAN,
        limits: StageLimits = LIMITS,
        taps: Sequence[int] = (),
        streamed: Iterable[int] = (),
        source: TensorSource | None = None,
        blocks: Mapping[int, int] = MappingProxyType({0: 8, 1: 8}),
    ) -> None:
        self.card = card or SimulatedCard()
        self.program = lowered(plan, first, last, taps=taps, streamed=streamed)
        self.weights = load(self.card, self.program, source)
        self.stage = self.weights.stage(blocks, limits)

    def logits(self, step: Step, hidden: HiddenRef | None = None) -> Float32:
        """Run a step; return the raw logits of all rows."""
        ticket = self.stage.submit(step, hidden, select(step.num_rows))
        self.stage.wait(ticket, 60.0)
        rows = self.stage.raw_rows(ticket, np.arange(step.num_rows, dtype=np.int32))
        self.stage.release(ticket)
        return rows


def sequences(chunks: Sequence[tuple[int, int]], blocks: Sequence[Sequence[int]], seed: int = 0) -> Step:
    """Return a step whose sequences have the same blocks in both KV groups; see `step_of`."""
    return step_of(chunks, blocks, blocks, seed=seed)


def one(rows: int, first: int = 0, blocks: Sequence[int] = (0,), seed: int = 0) -> Step:
    """Return a step of one sequence."""
    return sequences([(first, rows)], [blocks], seed)


def hidden_of(rows: int, seed: int = 0) -> HostHidden:
    """Return random hidden states."""
    return HostHidden(random_rows(rows, MODEL.hidden, seed))


def late(count: int, rows: list[int]) -> Selection:
    """Select every row of a step; some have late edits."""
    return msgspec.structs.replace(select(count), late=np.isin(np.arange(count), rows))


def edits(*rows: list[tuple[int, float]]) -> LateEdits:
    """Return late edits of (id, bias) of each late row."""
    flat = [edit for row in rows for edit in row]
    return LateEdits(
        np.cumsum([0, *map(len, rows)], dtype=np.int32),
        np.array([edit[0] for edit in flat], np.int32),
        np.ones(len(flat), np.float32),
        np.array([edit[1] for edit in flat], np.float32),
    )


def allowing(*rows: int) -> NDArray[np.uint32]:
    """Return masks that allow one id in each row."""
    masks = np.zeros((len(rows), WORDS), np.uint32)
    for row, token in enumerate(rows):
        masks[row, token // 32] = 1 << token % 32
    return masks
