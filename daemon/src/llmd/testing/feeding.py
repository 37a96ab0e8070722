"""Checks steps that take the tokens of the step before them from the device itself (`Step.feed`)."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, Device, LoadedWeights, Program, StageLimits, Step, Ticket
from llmd.api.step import Int32
from llmd.testing.runs import lower_range
from llmd.testing.selections import Places, make_late_edits, make_masks, make_selection, masked_places
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload

NUM_STEPS = 6
"""Steps that decode."""


def decode_twice(device: Device, workload: Workload) -> list[NDArray[np.float32]]:
    """Decode after the sequences of a workload; return the raw logits ``[steps, sequences, vocab]`` twice.

    First, the device feeds each step with the tokens that it drew. Then the host passes these tokens on.
    """
    program = lower_range(device, workload, workload.first_part, workload.last_part)
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    try:
        return [_Decoding(workload, program, weights).run(is_fed=is_fed) for is_fed in (True, False)]
    finally:
        weights.close()


class _Decoding:
    def __init__(self, workload: Workload, program: Program, weights: LoadedWeights) -> None:
        self._workload = workload
        self._lengths = np.array([len(ids) for ids in workload.tokens], np.int32)
        count, width = len(self._lengths), -(-(int(self._lengths.max()) + NUM_STEPS) // BLOCK_LEN)
        table = np.arange(count * width, dtype=np.int32).reshape(count, width)
        self._tables = tuple(table for _ in program.groups)
        blocks = {group.id: table.size for group in program.groups if group.layers}
        limits = StageLimits(int(self._lengths.sum()), count, count, workload.kv_dtype)
        self._stage = weights.stage(blocks, limits)

    def run(self, *, is_fed: bool) -> NDArray[np.float32]:
        """Run the prompts in one step, then decode."""
        logits = []
        ticket = self._submit(0, np.concatenate(self._workload.tokens).astype(np.int32), None)
        self._complete(0, ticket)
        for number in range(1, NUM_STEPS + 1):
            tokens = -1 - np.arange(len(self._lengths), dtype=np.int32) if is_fed else self._tokens(ticket)
            following = self._submit(number, tokens, ticket if is_fed else None)
            logits.append(self._take(ticket))
            self._complete(number, following)
            ticket = following
        logits.append(self._take(ticket))
        self._stage.close()
        return np.array(logits)

    def _submit(self, number: int, token_ids: Int32, feed: Ticket | None) -> Ticket:
        counts = np.ones_like(self._lengths) if number else self._lengths
        ends = np.cumsum(counts, dtype=np.int32)
        first = self._lengths + (number - 1) if number else np.zeros_like(self._lengths)
        step = Step(
            token_ids=token_ids,
            positions=np.arange(ends[-1], dtype=np.int32) + np.repeat(first - ends + counts, counts),
            row_offsets=np.concatenate(([0], ends)).astype(np.int32),
            block_tables=self._tables,
            copies=np.zeros((0, 3), np.int32),
            feed=feed,
        )
        selection = make_selection(self._workload, self._places(number))
        return self._stage.submit(step, None, msgspec.structs.replace(selection, rows=ends - 1))

    def _complete(self, number: int, ticket: Ticket) -> None:
        """Apply the late edits and the masks of a step, whose tokens are now all known to the host."""
        places = self._places(number)
        selection = make_selection(self._workload, places)
        if selection.late is not None and selection.late.any():
            self._stage.apply_edits(ticket, make_late_edits(self._workload, places))
        if masked := masked_places(selection, places):
            self._stage.apply_masks(ticket, make_masks(self._workload, masked))

    def _tokens(self, ticket: Ticket) -> Int32:
        result = self._stage.wait(ticket, 60.0)
        assert result.tokens is not None, "the selection has draws"
        return np.where(result.tokens < 0, result.ids[:, 0], result.tokens)

    def _take(self, ticket: Ticket) -> NDArray[np.float32]:
        self._stage.wait(ticket, 60.0)
        logits = self._stage.raw_rows(ticket, np.arange(len(self._lengths), dtype=np.int32)).copy()
        self._stage.release(ticket)
        return logits

    def _places(self, number: int) -> Places:
        """Return the sequence and position of each output row."""
        return [(s, length - 1 + number) for s, length in enumerate(self._lengths.tolist())]
