"""Candidates, sums and tokens of rows in several parts are those of `llmd.api.candidates`."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import LateEdits, Selection, StageLimits, StepResult
from llmd.api.candidates import OutputRows
from llmd.api.draws import GREEDY, HOST, SAMPLED, Draws
from llmd_backend_vulkan.memory import Arena, Region
from llmd_backend_vulkan.outputs import Outputs
from llmd_backend_vulkan.outputs.layout import OutputsLayout

VOCAB = 2500
LIMITS = StageLimits(max_rows=8, max_sequences=8, max_outputs=8)
INF = np.inf


class Case:
    """Output rows on the device, and the same as they are defined."""

    def __init__(self, arena: Arena, selection: Selection, raw: np.ndarray) -> None:
        self.layout = OutputsLayout(VOCAB, LIMITS)
        self.region: Region = arena.take(self.layout.places["end"])
        self.outputs = Outputs(arena, self.region, 0, self.layout)
        padded = np.zeros((len(raw), self.layout.stride), np.float32)
        padded[:, :VOCAB] = raw
        arena.upload(self.region, self.layout.places["raw"], padded)
        self.outputs.begin(selection)
        self.defined = OutputRows(raw, selection, LIMITS.num_candidates)
        self._bucket = len(raw)

    def finish(self) -> tuple[StepResult, StepResult]:
        """Return the results of the device, and those that are defined."""
        recording = self.outputs.recording(self._bucket)
        recording.submit()
        assert recording.wait(60.0)
        return self.outputs.result(), self.defined.result()


def logits(rows: int, spread: float = 2.0) -> np.ndarray:
    """Return random logits with some equal ones."""
    draw = np.random.default_rng(7)
    raw = (draw.standard_normal((rows, VOCAB)) * spread).astype(np.float32)
    raw[:, 1000:1010] = raw[:, 2000:2010]
    raw[0, :2] = 0.0, -0.0
    return raw


def select(rows: int, *, edits: int = 0, masked: bool = False, raw_top: int = 0) -> Selection:
    """Return a selection of all rows."""
    draw = np.random.default_rng(8)
    ids = [np.sort(draw.choice(VOCAB, edits, replace=False)) for _ in range(rows)]
    return Selection(
        rows=np.arange(rows, dtype=np.int32),
        edit_offsets=np.arange(rows + 1, dtype=np.int32) * np.int32(edits),
        edit_ids=np.concatenate([*ids, np.zeros(0)]).astype(np.int32),
        edit_factors=draw.uniform(0.5, 3.0, rows * edits).astype(np.float32),
        edit_biases=draw.uniform(-2.0, 2.0, rows * edits).astype(np.float32),
        masked=np.full(rows, masked),
        temperatures=np.linspace(0.3, 2.0, rows, dtype=np.float32),
        targets=np.array([-1, *range(5, 5 * rows, 5)], np.int32),
        raw_top=raw_top,
    )


def assert_equal(mine: StepResult, defined: StepResult, rows: slice | np.ndarray = slice(None)) -> None:
    """Compare everything, sums within rounding."""
    for name in StepResult.__struct_fields__:
        a, b = getattr(mine, name), getattr(defined, name)
        if b is None:
            assert a is None
        elif name in {"raw_logsumexp", "edited_logsumexp", "edited_entropy", "edited_deviation"}:
            np.testing.assert_allclose(a[rows], b[rows], rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(a[rows], b[rows], err_msg=name)


def draws_of(table: list[tuple[float, ...]], kinds: list[int]) -> Draws:
    """Return draws of rows with these parameters."""
    rows = len(table)
    return Draws(
        kinds=np.array(kinds, np.int8),
        table=np.array(table, np.float64),
        seeds=np.arange(rows, dtype=np.uint64) * np.uint64(7919 << 24),
        positions=np.arange(rows, dtype=np.uint64) + np.uint64(11),
        choices=np.arange(rows, dtype=np.uint64),
        token_only=np.zeros(rows, np.bool_),
    )


def test_candidates_and_sums_are_those_of_the_whole_row(arena: Arena) -> None:
    mine, defined = Case(arena, select(5, raw_top=20), logits(5)).finish()
    assert_equal(mine, defined)


def test_logits_are_edited_exactly(arena: Arena) -> None:
    case = Case(arena, select(3, edits=300, raw_top=3), logits(3))  # more than there is memory for at first
    mine, defined = case.finish()
    assert_equal(mine, defined)
    rows = np.array([2, 0], np.int32)
    np.testing.assert_array_equal(case.outputs.edited_rows(rows), case.defined.edited[rows])
    np.testing.assert_array_equal(case.outputs.raw_rows(rows), case.defined.raw[rows])


def test_masks_remove_tokens_and_a_row_may_allow_few_or_none(arena: Arena) -> None:
    case = Case(arena, select(3, edits=5, masked=True, raw_top=4), logits(3))
    masks = np.zeros((3, case.layout.mask_words), np.uint32)
    masks[0] = np.random.default_rng(9).integers(0, 1 << 32, case.layout.mask_words, np.uint32)
    masks[1, 5] = 0b1010
    with pytest.raises(ValueError, match="before apply_masks"):
        case.outputs.result()
    for one in (case.outputs, case.defined):
        one.apply_masks(masks)
    assert_equal(*case.finish())


def test_late_edits_arrive_after_the_logits(arena: Arena) -> None:
    late = np.array([False, True, True])
    selection = msgspec.structs.replace(select(3), late=late, masked=np.array([False, False, True]))
    case = Case(arena, selection, logits(3))
    edits = LateEdits(
        offsets=np.array([0, 2, 3], np.int32),
        ids=np.array([3, 2400, 8], np.int32),
        factors=np.array([1.5, 0.7, 1.0], np.float32),
        biases=np.array([9.0, 8.0, 7.0], np.float32),
    )
    masks = np.full((1, case.layout.mask_words), 0x55555555, np.uint32)
    with pytest.raises(ValueError, match="apply_edits before apply_masks"):
        case.outputs.apply_masks(masks)
    complete = [case.outputs.is_complete]
    for one in (case.outputs, case.defined):
        one.apply_edits(edits)
        one.apply_masks(masks)
    assert [*complete, case.outputs.is_complete] == [False, True]
    assert_equal(*case.finish())


@pytest.mark.parametrize(
    "parameters",
    [
        (1.0, 1.0, 40.0, 1.0, -INF, -INF),
        (0.7, 0.7, INF, 0.9, -INF, -INF),
        (1.0, 1.0, INF, 1.0, -3.0, -INF),
        (3.0, 3.0, INF, 1.0, -INF, -INF),
        (3.0, 2.0, INF, 0.95, -INF, -INF),
        (2.0, 5.0, 700.0, 0.99, -5.0, -4.0),
        (4.0, 4.0, 300.0, 1.0, -INF, -INF),
        (1.0, 1.0, 1.0, 0.5, -1.0, -1.0),
    ],
)
def test_tokens_are_drawn_as_defined_also_beyond_the_candidates(
    arena: Arena, parameters: tuple[float, ...]
) -> None:
    rows = 8
    selection = msgspec.structs.replace(select(rows), draws=draws_of([parameters] * rows, [SAMPLED] * rows))
    mine, defined = Case(arena, selection, logits(rows, spread=1.0)).finish()
    assert_equal(mine, defined)


def test_draws_beyond_the_candidates_happen(arena: Arena) -> None:
    rows = 8
    flat = draws_of([(5.0, 5.0, INF, 1.0, -INF, -INF)] * rows, [SAMPLED] * rows)
    mine, _ = Case(
        arena, msgspec.structs.replace(select(rows), draws=flat), logits(rows, spread=1.0)
    ).finish()
    assert mine.tokens is not None
    assert any(token not in ids for token, ids in zip(mine.tokens, mine.ids, strict=True))


def test_equal_logits_beyond_the_candidates_are_drawn_in_order_of_their_ids(arena: Arena) -> None:
    rows = 8
    raw = np.round(logits(rows, spread=1.0))
    raw[:2] = 0.0
    table: list[tuple[float, ...]] = [(1.0, 1.0, INF, 1.0, -INF, -INF), (1.0, 1.0, 900.0, 0.97, -INF, -INF)]
    selection = msgspec.structs.replace(select(rows), draws=draws_of(table * 4, [SAMPLED] * rows))
    assert_equal(*Case(arena, selection, raw).finish())


def test_masked_tokens_are_not_drawn(arena: Arena) -> None:
    rows = 6
    flat = draws_of([(9.0, 9.0, 200.0, 0.999, -INF, -INF)] * rows, [SAMPLED] * rows)
    selection = msgspec.structs.replace(select(rows, masked=True), draws=flat)
    case = Case(arena, selection, logits(rows, spread=1.0))
    masks = np.zeros((rows, case.layout.mask_words), np.uint32)
    masks[:, 3:10] = np.random.default_rng(3).integers(0, 1 << 32, (rows, 7), np.uint32)
    for one in (case.outputs, case.defined):
        one.apply_masks(masks)
    mine, defined = case.finish()
    assert mine.tokens is not None
    assert np.all((mine.tokens >= 96) & (mine.tokens < 320))
    np.testing.assert_array_equal(mine.tokens, defined.tokens)


def test_rows_of_the_host_and_greedy_rows_take_the_best_token(arena: Arena) -> None:
    plain = (1.0, 1.0, INF, 1.0, -INF, -INF)
    draws = draws_of([plain] * 3, [HOST, GREEDY, GREEDY])
    draws = msgspec.structs.replace(draws, token_only=np.array([False, True, False]))
    case = Case(arena, msgspec.structs.replace(select(3, edits=4), draws=draws), logits(3))
    mine, defined = case.finish()
    assert_equal(mine, defined, np.array([0, 2]))
    assert mine.tokens is not None
    assert defined.tokens is not None
    assert mine.tokens.tolist() == defined.tokens.tolist()
    assert mine.tokens[0] == -1
    fed = case.outputs.results.view[:3].view(np.int32)
    assert fed[0] == mine.ids[0, 0]


def test_greedy_rows_that_need_no_more_take_the_lowest_id_of_the_best_logits(arena: Arena) -> None:
    plain = (1.0, 1.0, INF, 1.0, -INF, -INF)
    raw = logits(6)
    raw[1, [7, 1500, 2400]] = 50.0
    raw[2, 2499] = 50.0
    raw[3, [1023, 1024]] = 50.0
    raw[5] = -1.0
    draws = msgspec.structs.replace(draws_of([plain] * 6, [GREEDY] * 6), token_only=np.ones(6, np.bool_))
    selection = msgspec.structs.replace(select(6, raw_top=3, masked=True), draws=draws)
    case = Case(arena, selection, raw)
    masks = np.full((6, case.layout.mask_words), 0xFFFFFFFF, np.uint32)
    masks[4] = 0
    masks[4, 60] = 0b1000
    for one in (case.outputs, case.defined):
        one.apply_masks(masks)
    mine, defined = case.finish()
    assert mine.tokens is not None
    assert defined.tokens is not None
    assert mine.tokens.tolist() == defined.tokens.tolist()
    assert mine.tokens[1:].tolist() == [7, 2499, 1023, 60 * 32 + 3, 0]


def test_wrong_arrays_are_refused(arena: Arena) -> None:
    case = Case(arena, select(2, masked=True), logits(2))
    with pytest.raises(ValueError, match="expected uint32"):
        case.outputs.apply_masks(np.zeros((1, 3), np.uint32))
    with pytest.raises(ValueError, match="more than 1024"):
        OutputsLayout(VOCAB, msgspec.structs.replace(LIMITS, num_candidates=2000))
