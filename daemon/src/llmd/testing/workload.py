"""What conformance cases compute, and the schedules by which they can be run.

The same rows can run in one batch, one by one or in chunks, with other block placements, or split over
stages. A row is identified by (sequence, position), so the outcomes of different schedules can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    BLOCK_LEN,
    PLAIN_FORMATS,
    ActivationDtype,
    Attention,
    EncoderAttention,
    Format,
    KVDtype,
    ModelPlan,
    Op,
    Precision,
    TensorRef,
)
from llmd.api.features import DRAWS, STREAMS, TAPS
from llmd.api.ops import FACTOR_OPS
from llmd.models.needed_features import needed_features

Place = tuple[int, int]
"""(sequence, position)."""


class Workload(msgspec.Struct, frozen=True):
    """Parts ``[first_part, last_part)`` of a plan over some sequences."""

    name: str
    plan: ModelPlan
    first_part: int
    last_part: int
    tokens: tuple[tuple[int, ...], ...]
    """The token ids of each sequence.

    If the parts do not start with the embedding, random hidden states seeded by (sequence, position) are the
    input.
    """
    format: Format = "f32"
    kv_dtype: KVDtype = "f32"
    kv_is_tested: bool = False
    """Whether the case tests ``kv_dtype``. If not, a device without this dtype runs the case in another."""
    activations: ActivationDtype = "int8"
    precision: Precision = "f32"
    edits: bool = False
    """Whether every output row has edits, a target and raw tops, to exercise all of a selection."""
    masks: bool = False
    """Whether every output row has a grammar mask."""
    draws: bool = False
    """Whether the device draws tokens; some rows then have edits that come late, and some have masks."""
    taps: tuple[int, ...] = ()
    """`Program.taps`, for parts without a head: the tapped hidden states of a row follow its output."""
    streamed: tuple[int, ...] = ()
    """`Program.streamed`."""
    token_types: bool = False
    """Whether every third row has token type 1."""
    adapters: tuple[int, ...] = ()
    """`Step.adapters` of each sequence; empty: none."""
    begun: int = 0
    """Rows of the first sequence that run before all others in one step, to reach a long context quickly."""
    integer_ops: tuple[str, ...] = FACTOR_OPS
    """The kinds of ops whose matrices have ``format`` if that is not plain."""
    times_steps: bool = False
    """Whether the times of steps are checked, of devices that keep them."""
    max_nmse: float = 1e-10

    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops of the parts in order."""
        return tuple(op for part in self.plan.parts[self.first_part : self.last_part] for op in part.ops)

    @property
    def features(self) -> set[str]:
        """The features of devices that the case tries."""
        tried = ((DRAWS, self.draws), (STREAMS, bool(self.streamed)), (TAPS, bool(self.taps)))
        return needed_features(self.plan.groups, self.ops) | {name for name, used in tried if used}

    @property
    def cost(self) -> int:
        """Rows times ops, which is about proportional to the run time on most devices."""
        return sum(map(len, self.tokens)) * (1 + len(self.ops))

    @property
    def has_head(self) -> bool:
        return self.last_part == len(self.plan.parts) and self.plan.has_head

    @property
    def keeps_keys(self) -> bool:
        """Whether keys and values are in the KV cache."""
        return any(isinstance(op, Attention) for op in self.ops)

    @property
    def runs_whole_sequences(self) -> bool:
        """Whether sequences cannot be cut into chunks, because their rows attend to later rows."""
        return any(isinstance(op, EncoderAttention) for op in self.ops)

    def format_of(self, kind: str, ref: TensorRef) -> Format:
        """Return the format of a tensor: vectors are always f32, and so are integers."""
        if ref.integers_below is not None:
            return "f32"
        if self.format not in PLAIN_FORMATS:
            return self.format if kind in self.integer_ops and ref.is_matrix else "f32"
        return self.format if ref.is_matrix else "f32"


class Schedule(msgspec.Struct, frozen=True):
    """How the rows of a workload are split over steps and stages."""

    steps: tuple[tuple[Place, ...], ...]
    """(sequence, number of rows) pairs of each step."""
    placement_seed: int = 0
    cuts: tuple[int, ...] = ()
    """Part numbers at which a new stage starts."""


class Outcome(msgspec.Struct, frozen=True):
    """The results of each row."""

    rows: dict[Place, NDArray[np.float32]]
    """Full logits, or the output hidden states and those of the taps."""
    picked: dict[Place, dict[str, NDArray[np.generic]]]
    """The fields of `StepResult` that are defined for the row, by name."""


def one_by_one(workload: Workload) -> Schedule:
    """Return a schedule that runs every row alone, except the ``begun`` rows."""
    steps = [[(s, 1)] for s, ids in enumerate(workload.tokens) for _ in ids]
    return _schedule(workload, _begin(workload) + steps[workload.begun :])


def edges_alone(workload: Workload) -> Schedule:
    """Return a schedule that runs each row of `edge_places` alone, after the rows before it in one chunk."""
    steps = _begin(workload)
    for s, ids in enumerate(workload.tokens):
        done = workload.begun if s == 0 else 0
        for p in (position for sequence, position in edge_places(workload) if sequence == s):
            steps += [[(s, p - done)], [(s, 1)]] if p > done else [[(s, 1)]]
            done = p + 1
        steps += [[(s, len(ids) - done)]] if done < len(ids) else []
    return _schedule(workload, steps)


def edge_places(workload: Workload) -> list[Place]:
    """Return the first and last places of sequences and blocks, which often fail; none of ``begun``."""
    return [
        (s, p)
        for s, ids in enumerate(workload.tokens)
        for p in range(workload.begun if s == 0 else 0, len(ids))
        if p == len(ids) - 1 or p % BLOCK_LEN in (0, BLOCK_LEN - 1)
    ]


def all_at_once(workload: Workload, *, seed: int = 1) -> Schedule:
    """Return a schedule with a single step."""
    return _schedule(workload, [[(s, len(ids)) for s, ids in enumerate(workload.tokens)]], seed)


def ragged(workload: Workload, *, seed: int = 2, cuts: tuple[int, ...] = ()) -> Schedule:
    """Return a schedule with uneven chunks, and with prefill and decode mixed in most steps."""
    generator = np.random.default_rng(seed)
    left = [len(ids) for ids in workload.tokens]
    left[0] -= workload.begun
    steps = _begin(workload)
    while any(left):
        step = [(s, int(min(n, generator.choice((1, 1, 3, 7, 17))))) for s, n in enumerate(left) if n]
        for s, count in step:
            left[s] -= count
        steps.append(step)
    return _schedule(workload, steps, seed, cuts)


def _begin(workload: Workload) -> list[list[Place]]:
    return [[(0, workload.begun)]] if workload.begun else []


def _schedule(
    workload: Workload, steps: Sequence[Sequence[Place]], seed: int = 0, cuts: tuple[int, ...] = ()
) -> Schedule:
    """Build a schedule. A sequence that cannot be cut runs in the step that would have completed it."""
    if workload.runs_whole_sequences:
        last_step = {s: i for i, step in enumerate(steps) for s, _ in step}
        steps = [
            [(s, len(ids)) for s, ids in enumerate(workload.tokens) if last_step[s] == i]
            for i in range(len(steps))
        ]
    return Schedule(tuple(tuple(step) for step in steps if step), seed, cuts)
