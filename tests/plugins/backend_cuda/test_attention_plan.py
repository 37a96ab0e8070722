"""Plans cover every row and span once, and fit into the memory that is taken for them."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.device import StageLimits
from llmd_backend_cuda.attention_plan import (
    HEADER,
    ITEM_FIELDS,
    AttentionShape,
    plan_attention,
    scratch_bytes,
)

LIMITS = StageLimits(512, 16, 16)
CONTEXT_LEN = 6000


def _step(random: np.random.Generator, rows_of_sequence: list[int]) -> tuple[np.ndarray, np.ndarray]:
    firsts = [int(random.integers(0, CONTEXT_LEN - rows)) for rows in rows_of_sequence]
    offsets = np.concatenate([[0], np.cumsum(rows_of_sequence)]).astype(np.int32)
    positions = np.concatenate([np.arange(a, a + n) for a, n in zip(firsts, rows_of_sequence, strict=True)])
    return offsets, positions.astype(np.int32)


def _plan(
    shape: AttentionShape, places: int, offsets: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the items of split tiles and those with whole tiles."""
    out = np.full(shape.plan_ints(LIMITS, CONTEXT_LEN), -1, np.int32)
    length = plan_attention(shape, places, offsets, positions, out)
    num_split, count = out[:2].tolist()
    assert length == HEADER + ITEM_FIELDS * count
    assert np.all(out[length:] == -1)
    items = out[HEADER:length].reshape(count, ITEM_FIELDS)
    return items[:num_split], items[num_split:]


def _check(
    shape: AttentionShape,
    num_places: int,
    offsets: np.ndarray,
    split: np.ndarray,
    whole: np.ndarray,
    positions: np.ndarray,
) -> None:
    covered = np.zeros(len(positions), int)
    taken = np.zeros(num_places + 1, int)
    places = shape.places_of(positions)
    first_items = split[split[:, 4] == split[:, 7]]
    for row, count, sequence, position, first_span, spans, place, _ in np.concatenate(
        [first_items, whole]
    ).tolist():
        covered[row : row + count] += 1
        assert offsets[sequence] <= row
        assert row + count <= offsets[sequence + 1]
        last = max(0, places[row + count - 1])
        assert position == (places if shape.top_k else positions)[row]
        assert count == 1 or not shape.top_k
        seen_from = 0 if shape.window is None else max(0, position - shape.window + 1)
        assert [first_span, first_span + spans - 1] == shape.span_of(np.array([seen_from, last])).tolist()
        is_split = row in first_items[:, 0]
        assert count * shape.pair_heads <= 16 * (1 if is_split else shape.tiles) or count == 1
        if is_split:
            assert sorted(split[split[:, 0] == row, 7]) == list(range(first_span, first_span + spans))
            if spans > 1:
                taken[place : place + spans * count * shape.pair_heads] += 1
    assert np.all(covered == 1)
    assert taken.max(initial=0) <= 1
    assert taken[num_places] == 0
    assert len(whole) <= shape.most_whole(len(positions), LIMITS)
    assert np.all(np.diff(whole[:, 5]) <= 0)


@pytest.mark.parametrize(
    "shape",
    [
        AttentionShape(32, 8, 128, None),
        AttentionShape(4, 4, 12, 40),
        AttentionShape(7, 1, 256, 1000),
        AttentionShape(40, 1, 64, None),
        AttentionShape(16, 1, 64, 9000),
        AttentionShape(40, 1, 576, None, 512, 2048),
        AttentionShape(3, 1, 60, None, 38, 100),
        AttentionShape(16, 1, 64, None, stride=4),
        AttentionShape(3, 1, 60, None, 60, 100, 4),
        AttentionShape(5, 1, 512, None, stride=128),
    ],
    ids=str,
)
def test_rows_and_spans_are_covered_once(shape: AttentionShape) -> None:
    random = np.random.default_rng(5)
    most = shape.num_places(LIMITS, CONTEXT_LEN)
    for _ in range(60):
        rows = random.choice([1, 1, 1, 2, 5, 16, 33, 64, 100], size=random.integers(1, 12)).tolist()
        while sum(rows) > LIMITS.max_rows:
            rows.pop()
        offsets, positions = _step(random, rows)
        places = int(random.choice([most, most, 100, 0]))
        split, whole = _plan(shape, places, offsets, positions)
        _check(shape, places, offsets, split, whole, positions)
        if places == most and shape.is_always_split(len(positions), CONTEXT_LEN):
            assert not len(whole)


def test_rows_see_the_vectors_that_are_complete() -> None:
    positions = np.array([0, 2, 3, 6, 7, 400], np.int32)
    assert AttentionShape(4, 1, 32, None, stride=4).places_of(positions).tolist() == [-1, -1, 0, 0, 1, 99]
    assert AttentionShape(4, 1, 32, None, 32, 2, 4).places_of(positions).tolist() == [-1, -1, 0, 0, 1, 1]
    assert AttentionShape(4, 1, 32, None, stride=128).most_spans(100) == 1


def test_a_decoding_step_is_always_split_if_there_is_memory() -> None:
    shape = AttentionShape(32, 8, 128, None)
    assert shape.is_always_split(64, CONTEXT_LEN)
    assert not shape.is_always_split(65, CONTEXT_LEN)
    assert not shape.is_always_split(64, 1 << 20)
    assert shape.is_always_split(1, 1 << 20)


def test_scratch_is_bounded() -> None:
    shapes = [AttentionShape(32, 8, 128, None), AttentionShape(64, 64, 256, 512)]
    assert scratch_bytes(shapes, StageLimits(4096, 256, 256), 1 << 20) < 66 << 20
    assert scratch_bytes(shapes[:1], StageLimits(4, 4, 4), 100) < 100
