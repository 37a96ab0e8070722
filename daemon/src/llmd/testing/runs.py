"""Run workloads on a device under a schedule, and collect the results by row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    BLOCK_LEN,
    Device,
    HiddenRef,
    HostHidden,
    LoadedWeights,
    PluginError,
    Program,
    Selection,
    Stage,
    StageLimits,
    Step,
    Ticket,
)
from llmd.models.lowering import lower
from llmd.testing.selections import (
    defined_fields,
    make_late_edits,
    make_masks,
    make_selection,
    masked_places,
)
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Outcome, Place, Schedule, Workload


def lower_range(device: Device, workload: Workload, first_part: int, last_part: int) -> Program:
    """Lower some of the workload's parts to a program for the device."""
    return lower(
        workload.plan,
        first_part,
        last_part,
        format_of=workload.format_of,
        patterns=device.info.patterns,
        activations=workload.activations,
        precision=workload.precision,
        taps=workload.taps,
        streamed=workload.streamed,
    )


class _LoadProgress:
    """The progress that a device reports of a load."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self._calls.append((done, total))

    def check(self, program: Program) -> None:
        """Check that it rose to the bytes of the program's weights, if there was any.

        Raises:
            PluginError: it did not.
        """
        total = sum(weight.num_bytes for weight in program.weights)
        if self._calls and (self._calls != sorted(self._calls) or self._calls[-1] != (total, total)):
            raise PluginError(
                f"the progress of a load of {total} bytes is reported as {self._calls}",
                hint="call `progress` with the bytes that are done, and those of all weights",
            )


class LoadedWorkload:
    """A workload's weights on a device, for any number of schedules with the same cuts. A context manager.

    All stages are on the same device.
    """

    def __init__(
        self,
        device: Device,
        workload: Workload,
        cuts: tuple[int, ...] = (),
        source: RandomSource | None = None,
    ) -> None:
        self._workload = workload
        bounds = (workload.first_part, *cuts, workload.last_part)
        self._cuts = cuts
        self._programs = [
            lower_range(device, workload, first, last) for first, last in itertools.pairwise(bounds)
        ]
        self._loaded: list[LoadedWeights] = []
        for program in self._programs:
            progress = _LoadProgress()
            self._loaded.append(device.load(program, source or RandomSource(), progress))
            progress.check(program)

    def run(self, schedule: Schedule) -> Outcome:
        """Run a schedule with these cuts on new stages."""
        assert schedule.cuts == self._cuts
        workload = self._workload
        most = max(sum(count for _, count in step) for step in schedule.steps)
        blocks = sum(1 + -(-len(ids) // BLOCK_LEN) for ids in workload.tokens) + 2
        adapters = 1 + max(workload.adapters, default=-1)
        limits = StageLimits(most, len(workload.tokens), most, workload.kv_dtype, max_adapters=adapters)
        stages: list[Stage] = []
        try:
            for program, parts in zip(self._programs, self._loaded, strict=True):
                stages.append(parts.stage({g.id: blocks for g in program.groups if g.layers}, limits))
            taps = [program.taps for program in self._programs]
            return _Run(workload, schedule, stages, blocks, taps).outcome()
        finally:
            for stage in stages:
                stage.close()

    def close(self) -> None:
        for parts in self._loaded:
            parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def run(
    device: Device, workload: Workload, schedule: Schedule, source: RandomSource | None = None
) -> Outcome:
    """Load the workload, run one schedule and free the weights."""
    with LoadedWorkload(device, workload, schedule.cuts, source) as loaded:
        return loaded.run(schedule)


class _Run:
    def __init__(
        self,
        workload: Workload,
        schedule: Schedule,
        stages: Sequence[Stage],
        num_blocks: int,
        taps: Sequence[tuple[int, ...]],
    ) -> None:
        self._workload = workload
        self._schedule = schedule
        self._stages = stages
        self._taps = taps
        self._lengths = [0] * len(workload.tokens)
        self._steps = [0] * len(workload.tokens)
        self._tables = self._place(num_blocks)

    def outcome(self) -> Outcome:
        outcome = Outcome({}, {})
        for step in self._schedule.steps:
            self._step(step, outcome)
        return outcome

    def _place(self, num_blocks: int) -> tuple[NDArray[np.int32], ...]:
        """Scatter the sequences' blocks over the pool, differently for each group."""
        tables = []
        width = max(-(-len(ids) // BLOCK_LEN) for ids in self._workload.tokens)
        for group in self._workload.plan.groups:
            order = np.random.default_rng([self._schedule.placement_seed, group.id]).permutation(num_blocks)
            if group.kind == "state":
                tables.append(order[: 2 * len(self._workload.tokens)].astype(np.int32).reshape(-1, 2))
                continue
            table = np.full((len(self._workload.tokens), width), -1, np.int32)
            taken = 0
            for s, ids in enumerate(self._workload.tokens):
                count = -(-len(ids) // BLOCK_LEN)
                table[s, :count] = order[taken : taken + count]
                taken += count
            tables.append(table)
        return tuple(tables)

    def _step(self, chunks: Sequence[Place], outcome: Outcome) -> None:
        places = [(s, self._lengths[s] + i) for s, count in chunks for i in range(count)]
        step = self._arrays(chunks, places)
        selection = make_selection(self._workload, places) if self._workload.has_head else None
        hidden: HiddenRef | None = self._hidden_in(places)
        tickets = []
        for stage in self._stages:
            last = stage is self._stages[-1]
            tickets.append(stage.submit(step, hidden, selection if last else None))
            if not (last and self._workload.has_head):
                hidden = stage.hidden(tickets[-1])
        if selection is None:
            assert hidden is not None
            rows = np.hstack([hidden.host(), *self._tapped(tickets)])
            outcome.rows.update(zip(places, rows, strict=True))
        else:
            self._collect(places, selection, tickets[-1], outcome)
        for stage, ticket in zip(self._stages, tickets, strict=True):
            stage.release(ticket)
        for s, count in chunks:
            self._lengths[s] += count
            self._steps[s] += 1

    def _tapped(self, tickets: Sequence[Ticket]) -> list[NDArray[np.float32]]:
        """Return the hidden states of the taps of all stages."""
        stages = zip(self._stages, tickets, self._taps, strict=True)
        return [stage.tap(ticket, part).host() for stage, ticket, parts in stages for part in parts]

    def _collect(self, places: list[Place], selection: Selection, ticket: Ticket, outcome: Outcome) -> None:
        stage = self._stages[-1]
        if selection.late is not None and selection.late.any():
            stage.apply_edits(ticket, make_late_edits(self._workload, places))
        if masked := masked_places(selection, places):
            stage.apply_masks(ticket, make_masks(self._workload, masked))
        result = stage.wait(ticket, 60.0)
        raw = stage.raw_rows(ticket, np.arange(selection.num_rows, dtype=np.int32))
        outcome.rows.update(zip(places, raw.copy(), strict=True))
        for row, place in enumerate(places):
            outcome.picked[place] = defined_fields(result, selection, row)

    def _arrays(self, chunks: Sequence[Place], places: list[Place]) -> Step:
        sequences = [s for s, _ in chunks]
        return Step(
            token_ids=np.array([self._workload.tokens[s][p] for s, p in places], np.int32),
            positions=np.array([p for _, p in places], np.int32),
            row_offsets=np.cumsum([0, *(count for _, count in chunks)]).astype(np.int32),
            block_tables=tuple(
                self._slots(table, sequences)
                if group.kind == "state"
                else np.ascontiguousarray(table[sequences])
                for group, table in zip(self._workload.plan.groups, self._tables, strict=True)
            ),
            copies=np.zeros((0, 3), np.int32),
            token_types=np.array([p % 3 == 2 for _, p in places], np.int32)
            if self._workload.token_types
            else None,
            adapters=np.array([self._workload.adapters[s] for s in sequences], np.int32)
            if self._workload.adapters
            else None,
        )

    def _slots(self, table: NDArray[np.int32], sequences: Sequence[int]) -> NDArray[np.int32]:
        """Return the slots that the next step reads and writes. Two steps leave their state in the first slot
        of a sequence, two in the second, and so on: in the slot that they read, and in another.
        """
        pairs = [
            (table[s, (n - 1) // 2 % 2] if n else -1, table[s, n // 2 % 2])
            for s in sequences
            for n in (self._steps[s],)
        ]
        return np.array(pairs, np.int32)

    def _hidden_in(self, places: list[Place]) -> HiddenRef | None:
        if self._workload.first_part == 0:
            return None
        width = self._workload.plan.hidden_size
        rows = [np.random.default_rng([7, *place]).standard_normal(width) for place in places]
        return HostHidden(np.array(rows, np.float32))
