"""Convert the chunks of a plan to the arrays of a step."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.draws import Draws
from llmd.api.step import LateEdits, Selection, Step, Ticket
from llmd.sampling.edit_table import NO_EDITS, Edits
from llmd.sampling.sampler import Sampler
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence as Running

Int32 = NDArray[np.int32]
NO_COPIES = np.zeros((0, 3), np.int32)
_UNKNOWN = 0
_NO_ADAPTER = -1


def build_step(
    chunks: Sequence[Chunk],
    tables: tuple[Int32, ...],
    copies: Int32 = NO_COPIES,
    adapters: Sequence[str] = (),
) -> Step:
    """Concatenate the tokens of the chunks; undrawn tokens get a placeholder (see `unknown_rows`).

    ``adapters`` are the names of the model's adapters, in the order of their numbers.
    """
    step = lay_out([(chunk.tokens, chunk.start, chunk.count) for chunk in chunks], tables, copies)
    if not any(chunk.sequence.adapter for chunk in chunks):
        return step
    names = [chunk.sequence.adapter for chunk in chunks]
    numbers = [adapters.index(name) if name else _NO_ADAPTER for name in names]
    return msgspec.structs.replace(step, adapters=np.array(numbers, np.int32))


def lay_out(
    pieces: Sequence[tuple[Sequence[int], int, int]], tables: tuple[Int32, ...], copies: Int32 = NO_COPIES
) -> Step:
    """Concatenate pieces of sequences; a piece is its known tokens, first position and length."""
    tokens: list[int] = []
    positions: list[int] = []
    for known, start, count in pieces:
        tokens += known
        positions += range(start, start + count)
        tokens += [_UNKNOWN] * (len(positions) - len(tokens))
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum([count for _, _, count in pieces], out=offsets[1:])
    return Step(
        token_ids=np.array(tokens, np.int32),
        positions=np.array(positions, np.int32),
        row_offsets=offsets,
        block_tables=tables,
        copies=copies,
    )


def unknown_rows(step: Step, chunks: Sequence[Chunk]) -> list[tuple[int, Running]]:
    """Return the rows of a step whose token is not drawn yet, with their sequences."""
    return [
        (row - 1, chunk.sequence)
        for chunk, row in zip(chunks, step.row_offsets[1:].tolist(), strict=True)
        if chunk.start + chunk.count > len(chunk.sequence.tokens) and not chunk.drafts
    ]


def fed(step: Step, rows: Int32, outputs: Int32, ticket: Ticket) -> Step:
    """Feed ``rows`` of a step with the tokens that the device chooses for ``outputs`` of ``ticket``."""
    step.token_ids[rows] = -1 - outputs
    return msgspec.structs.replace(step, feed=ticket)


def select_rows(
    rows: Int32,
    temperatures: NDArray[np.float32] | None = None,
    edits: Sequence[Edits] = (),
    *,
    masked: Sequence[bool] = (),
    targets: Int32 | None = None,
    raw_top: int = 0,
    late: NDArray[np.bool_] | None = None,
    draws: Draws | None = None,
) -> Selection:
    """Return a selection of the rows; ``edits`` and ``masked`` have one entry per row, or are empty."""
    count = len(rows)
    flat = flat_edits(edits or [NO_EDITS])
    return Selection(
        rows=rows,
        edit_offsets=flat.offsets if edits else np.zeros(count + 1, np.int32),
        edit_ids=flat.ids,
        edit_factors=flat.factors,
        edit_biases=flat.biases,
        masked=np.array(masked or [False] * count, np.bool_),
        temperatures=np.ones(count, np.float32) if temperatures is None else temperatures,
        targets=np.full(count, -1, np.int32) if targets is None else targets,
        raw_top=raw_top,
        late=late,
        draws=draws,
    )


def flat_edits(edits: Sequence[Edits]) -> LateEdits:
    """Return the edits of rows one after another."""
    offsets = np.zeros(len(edits) + 1, np.int32)
    np.cumsum([len(ids) for ids, _, _ in edits], out=offsets[1:])
    return LateEdits(offsets, *(np.concatenate(values) for values in zip(*edits, strict=True)))


def drawing(chunks: Sequence[Chunk]) -> list[Running]:
    """Return the sequences that get a token, in the order of the output rows of `build_selection`."""
    return [sequence for chunk in chunks for sequence in chunk.drawing]


def assumed(chunks: Sequence[Chunk]) -> list[tuple[int, ...]]:
    """Return for each output row the proposals that it assumes to be drawn; empty if there are none."""
    if not any(chunk.drafts for chunk in chunks):
        return []
    return [
        chunk.drafts[:place] if chunk.drafts else ()
        for chunk in chunks
        for place in range(len(chunk.drawing))
    ]


def build_selection(
    step: Step,
    chunks: Sequence[Chunk],
    sampler: Sampler,
    masked: Sequence[bool] = (),
    *,
    assumes: Sequence[tuple[int, ...]] = (),
    late: Sequence[int] = (),
    by_device: bool = False,
) -> Selection:
    """Select the rows that tokens are drawn from, then all rows of scored chunks, which are last in a step.

    Tokens are drawn from the last row of each chunk that ends its sequence, which is selected once for each
    sequence that draws from it, and from the rows of proposals: ``assumes`` is from `assumed`. ``late`` are
    the ids of sequences whose edits are not known yet. With ``by_device``, the device draws the tokens that
    it can.
    """
    ends = zip(chunks, step.row_offsets[1:].tolist(), strict=True)
    if assumes:
        firsts = [row - 1 - len(chunk.drafts) for chunk, row in ends for _ in chunk.drawing]
        rows = [first + len(tokens) for first, tokens in zip(firsts, assumes, strict=True)]
    else:
        rows = [row - 1 for chunk, row in ends for _ in chunk.drawing]
    sequences = drawing(chunks)
    request_ids = [one.request_id for one in sequences]
    outputs = np.array(rows, np.int32)
    selection = select_rows(
        outputs,
        sampler.temperatures(request_ids),
        sampler.edits(request_ids, assumes, late=late),
        masked=masked,
        raw_top=max((one.sampling.logprobs or 0 for one in sequences), default=0),
        late=np.array([one in late for one in request_ids], np.bool_) if late else None,
        draws=sampler.draws(request_ids, step.positions[outputs] + 1, _described(sequences, masked))
        if by_device
        else None,
    )
    scored = [chunk for chunk in chunks if chunk.scored]
    return _with_scored(selection, step, scored) if scored else selection


def _described(sequences: Sequence[Running], masked: Sequence[bool]) -> NDArray[np.bool_]:
    """Return the rows of which more than the token is needed: beams, logprobs, the check for empty masks."""
    described = np.array(
        [one.group is not None or one.sampling.logprobs is not None for one in sequences], np.bool_
    )
    if masked:
        described |= np.array(masked, np.bool_)
    return described


def _with_scored(selection: Selection, step: Step, chunks: Sequence[Chunk]) -> Selection:
    """Add all rows of these chunks to the selection; their target is the next token of the prompt."""
    targets = [
        token
        for chunk in chunks
        for token in chunk.sequence.tokens[chunk.start + 1 : chunk.start + chunk.count + 1]
    ]
    count = len(targets)
    wanted = max(chunk.sequence.prompt_logprobs or 0 for chunk in chunks)
    late, draws = selection.late, selection.draws
    return msgspec.structs.replace(
        selection,
        rows=np.append(selection.rows, np.arange(step.num_rows - count, step.num_rows, dtype=np.int32)),
        edit_offsets=np.append(selection.edit_offsets, np.full(count, selection.edit_offsets[-1])),
        masked=np.append(selection.masked, np.zeros(count, np.bool_)),
        temperatures=np.append(selection.temperatures, np.ones(count, np.float32)),
        targets=np.append(selection.targets, np.array(targets, np.int32)),
        raw_top=max(selection.raw_top, wanted),
        late=None if late is None else np.append(late, np.zeros(count, np.bool_)),
        draws=None if draws is None else _with_undrawn(draws, count),
    )


def _with_undrawn(draws: Draws, count: int) -> Draws:
    """Add ``count`` rows from which no token is drawn."""
    fields = msgspec.structs.asdict(draws).items()
    return Draws(
        **{
            name: np.concatenate((values, np.zeros((count, *values.shape[1:]), values.dtype)))
            for name, values in fields
        }
    )
