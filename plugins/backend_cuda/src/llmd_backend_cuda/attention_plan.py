"""How the attention of a step is cut into tiles and spans; ``kernels/attention.cu`` says what they are.

The plan of a step depends on the shape of the op, not on its layer: ops of the same shape read the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.device import StageLimits
from llmd.api.step import Int32
from llmd_backend_cuda.kv_memory import padded_dim
from llmd_backend_cuda.runtime import Memory, Runtime

CHUNK = 128
"""Positions of a chunk."""
SHORT_SPANS = 16
"""Spans of one chunk, at the beginning of a sequence."""
HEADER = 8
"""Integers of a plan before its items."""
ITEM_FIELDS = 8
"""Integers of an item, in the order of ``struct Item`` of ``kernels/attention_item.cuh``."""
_ROW, _NUM_ROWS, _SEQUENCE, _POSITION, _FIRST_SPAN, _NUM_SPANS, _FIRST_PLACE, _SPAN = range(8)

_PAIRS = 16
_LONG_CHUNKS = 4
_LONGEST_SHORT_WINDOW = 8192
_SPLIT_PAIRS = 64
"""A sequence with at most 64 pairs in a step is split over its spans."""
_SPLIT_ROWS = 64
"""All sequences of a step with at most 64 rows are split over their spans."""
_SCRATCH_BYTES = 64 << 20
"""Most memory for the sums of spans. Sequences whose sums do not fit are not split."""


class AttentionShape(msgspec.Struct, frozen=True):
    """What the kernel and the plan of an attention op depend on."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None
    value_dim: int = 0
    """Elements of a value; if 0 is given, as many as in a key."""
    top_k: int = 0
    """Most positions that a row sees, if they are chosen: then positions here are places in the list of a
    row, and a tile has one row. 0: rows see all positions."""
    stride: int = 1
    """Positions for each vector. Rows see vectors, which are counted as positions are otherwise."""

    def __post_init__(self) -> None:
        if not self.value_dim:
            msgspec.structs.force_setattr(self, "value_dim", self.head_dim)

    @property
    def ratio(self) -> int:
        """Query heads of a key-value head."""
        return self.heads // self.kv_heads

    @property
    def pair_heads(self) -> int:
        """Query heads of a tile."""
        return min(self.ratio, _PAIRS)

    @property
    def columns(self) -> int:
        """Blocks of the kernel that share a tile: one for each key-value head and up to 16 query heads."""
        return self.kv_heads * -(-self.ratio // _PAIRS)

    @property
    def tiles(self) -> int:
        """Groups of 16 pairs of a whole tile: what fits into registers."""
        if self.top_k:
            return 1
        return 4 if self.head_dim <= 128 else 2 if self.head_dim <= 256 else 1

    @property
    def warps(self) -> int:
        """Warps of a block, which share the dimensions of a value."""
        return 4 if self.head_dim <= 256 else 8

    @property
    def long_chunks(self) -> int:
        """Chunks of a span after the first `SHORT_SPANS`. Few spans are seen through a short window."""
        return 1 if self.window is not None and self.window <= _LONGEST_SHORT_WINDOW else _LONG_CHUNKS

    @property
    def place_bytes(self) -> int:
        """Bytes of the sums of one pair and span, for all columns."""
        return self.columns * (padded_dim(self.value_dim) + 2) * 4

    def span_of(self, positions: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the span of each position."""
        chunks = positions // CHUNK
        if self.long_chunks == 1:
            return chunks
        return np.where(
            chunks < SHORT_SPANS, chunks, SHORT_SPANS + (chunks - SHORT_SPANS) // self.long_chunks
        )

    @property
    def few_rows(self) -> int:
        """Most rows of a split tile."""
        return 1 if self.top_k else max(1, _PAIRS // self.pair_heads)

    @property
    def many_rows(self) -> int:
        """Most rows of a whole tile."""
        return 1 if self.top_k else max(1, _PAIRS * self.tiles // self.pair_heads)

    def places_of(self, positions: Int32) -> Int32:
        """Return the last position or vector that each row sees, or its place in the list of the row.

        -1: a row sees none.
        """
        seen = positions if self.stride == 1 else (positions + 1) // self.stride - 1
        return (
            np.minimum(seen, self.top_k - 1, dtype=np.int32)
            if self.top_k
            else seen.astype(np.int32, copy=False)
        )

    def most_spans(self, context_len: int) -> int:
        """Return the most spans that the rows of a split sequence see."""
        last = np.maximum(self.places_of(np.array([context_len - 1], np.int32)), 0)
        spans = int(self.span_of(last)[0]) + 1
        return spans if self.window is None else min(spans, (self.window + _SPLIT_ROWS) // CHUNK + 2)

    def num_places(self, limits: StageLimits, context_len: int) -> int:
        """Return for how many pairs and spans there is memory; 0 if all contexts have one span."""
        return min(self._needed_places(limits.max_rows, context_len), self._affordable_places)

    def is_always_split(self, rows: int, context_len: int) -> bool:
        """Whether a step of at most ``rows`` has no whole tile, if its plan is made with `num_places`."""
        return rows <= _SPLIT_ROWS and self._needed_places(rows, context_len) <= self._affordable_places

    def _needed_places(self, rows: int, context_len: int) -> int:
        spans = self.most_spans(context_len)
        return rows * self.pair_heads * spans if spans > 1 else 0

    @property
    def _affordable_places(self) -> int:
        return _SCRATCH_BYTES // self.place_bytes

    def most_whole(self, rows: int, limits: StageLimits) -> int:
        """Return the most whole tiles of a step with at most ``rows`` rows."""
        return min(rows, rows // self.many_rows + min(rows, limits.max_sequences))

    def most_items(self, limits: StageLimits, context_len: int) -> int:
        """Return the most items of a plan."""
        return limits.max_rows + self.num_places(limits, context_len) // self.pair_heads

    def plan_ints(self, limits: StageLimits, context_len: int) -> int:
        """Return the most integers of a plan."""
        return HEADER + ITEM_FIELDS * self.most_items(limits, context_len)


def plan_attention(
    shape: AttentionShape, num_places: int, row_offsets: Int32, positions: Int32, out: Int32
) -> int:
    """Write the plan of a step to the beginning of ``out``, and return its length.

    ``row_offsets`` and ``positions`` are those of the step, ``num_places`` is `AttentionShape.num_places`.
    ``out`` has `AttentionShape.plan_ints` elements. The plan has a header (items of split tiles, all items),
    then the items: those of split tiles, one for each span, then whole tiles, those with many spans first.
    """
    seen = shape.places_of(positions)
    places = np.maximum(seen, 0)  # a row that sees nothing has the first span, too
    is_split = _split_sequences(shape, num_places, row_offsets, places)
    tiles = _tiles(shape, is_split, row_offsets, places)
    tiles[:, _POSITION] = (seen if shape.top_k else positions)[tiles[:, _ROW]]
    in_split = is_split[tiles[:, _SEQUENCE]]
    whole, split = tiles[~in_split], tiles[in_split]
    spans = split[:, _NUM_SPANS]
    taken = np.where(spans > 1, spans * split[:, _NUM_ROWS] * shape.pair_heads, 0)
    split[:, _FIRST_PLACE] = np.cumsum(taken) - taken
    items = np.repeat(split, spans, axis=0)
    items[:, _SPAN] += np.arange(len(items), dtype=np.int32) - np.repeat(np.cumsum(spans) - spans, spans)
    count = len(items) + len(whole)
    out[:HEADER] = 0
    out[:2] = len(items), count
    rows = out[HEADER : HEADER + ITEM_FIELDS * count].reshape(count, ITEM_FIELDS)
    rows[: len(items)] = items
    rows[len(items) :] = whole[np.argsort(-whole[:, _NUM_SPANS], kind="stable")]
    return HEADER + ITEM_FIELDS * count


def _split_sequences(
    shape: AttentionShape, num_places: int, row_offsets: Int32, last: Int32
) -> NDArray[np.bool_]:
    """Return which sequences are split: those with few rows, as long as there is memory for the sums."""
    pairs = np.diff(row_offsets) * shape.pair_heads
    of_first, of_last = last[row_offsets[:-1]], last[row_offsets[1:] - 1]
    spans = shape.span_of(of_last) - _first_span(shape, of_first) + 1
    is_few = (pairs <= _SPLIT_PAIRS) | (row_offsets[-1] <= _SPLIT_ROWS)
    places = np.where(is_few & (spans > 1), spans * pairs, 0)
    is_split: NDArray[np.bool_] = is_few & (np.cumsum(places) <= num_places)
    return is_split


def _tiles(shape: AttentionShape, is_split: NDArray[np.bool_], row_offsets: Int32, last: Int32) -> Int32:
    """Return the tiles of a step as items ``[tiles, ITEM_FIELDS]`` at their first span.

    ``last`` is what `AttentionShape.places_of` returns, or 0. Items have no positions and places yet.
    """
    row, num_rows, sequence = _rows_of_tiles(shape, is_split, row_offsets)
    first_span = _first_span(shape, last[row])
    spans = shape.span_of(last[row + num_rows - 1]) - first_span + 1
    tiles = np.zeros((len(sequence), ITEM_FIELDS), np.int32)
    columns = {_ROW: row, _NUM_ROWS: num_rows, _SEQUENCE: sequence, _FIRST_SPAN: first_span}
    for field, column in (columns | {_NUM_SPANS: spans, _SPAN: first_span}).items():
        tiles[:, field] = column
    return tiles


def _rows_of_tiles(
    shape: AttentionShape, is_split: NDArray[np.bool_], row_offsets: Int32
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """Return the first row, the number of rows and the sequence of each tile."""
    sequences = len(is_split)
    if row_offsets[-1] == sequences:  # the shortest way for steps that only decode
        return row_offsets[:-1], np.ones(sequences, np.int32), np.arange(sequences)
    rows_of_tile = np.where(is_split, shape.few_rows, shape.many_rows)
    tiles_of = -(-np.diff(row_offsets) // rows_of_tile)
    sequence = np.repeat(np.arange(sequences), tiles_of)
    number = np.arange(len(sequence)) - np.repeat(np.cumsum(tiles_of) - tiles_of, tiles_of)
    row = row_offsets[sequence] + number * rows_of_tile[sequence]
    return row, np.minimum(rows_of_tile[sequence], row_offsets[sequence + 1] - row), sequence


def _first_span(shape: AttentionShape, positions: Int32) -> NDArray[np.integer]:
    """Return the first span that rows see."""
    if shape.window is None:
        return np.zeros_like(positions)
    return shape.span_of(np.maximum(positions - shape.window + 1, 0))


class AttentionScratch:
    """Memory for the sums of spans and for rotated queries, shared by all attention ops of a stage.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self, runtime: Runtime, shapes: Sequence[AttentionShape], limits: StageLimits, context_len: int
    ) -> None:
        sums, stats, arrived, queries = _sizes(shapes, limits, context_len)
        self.sums: Memory = runtime.allocate(sums)
        self.stats: Memory = runtime.allocate(stats)
        self.arrived: Memory = runtime.allocate(arrived)
        self.queries: Memory = runtime.allocate(queries)
        """Float32 ``[max_rows, heads, head_dim]`` if heads are rotated before they are stored (int4)."""
        runtime.fill_zero(self.arrived)


def scratch_bytes(shapes: Sequence[AttentionShape], limits: StageLimits, context_len: int) -> int:
    """Return the bytes that `AttentionScratch` takes: at most 64 MiB, some KiB, and queries with int4."""
    return sum(_sizes(shapes, limits, context_len))


def _sizes(
    shapes: Sequence[AttentionShape], limits: StageLimits, context_len: int
) -> tuple[int, int, int, int]:
    """Return the bytes of sums, stats, counters and rotated queries."""
    entries = [(shape, shape.num_places(limits, context_len) * shape.columns) for shape in shapes]
    rotated = [shape.heads * shape.head_dim for shape in shapes if limits.kv_dtype == "int4"]
    return (
        max([16, *(count * padded_dim(shape.value_dim) * 4 for shape, count in entries)]),
        max([16, *(count * 2 * 4 for _, count in entries)]),
        max([16, *(count // shape.pair_heads * 4 for shape, count in entries)]),
        max([16, *(4 * limits.max_rows * width for width in rotated)]),
    )
