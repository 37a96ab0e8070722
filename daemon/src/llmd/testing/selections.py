"""The selection of all rows of a step of a workload, with edits, masks and draws that depend on the place.

If the device draws, rows have all kinds and filters; some have edits that come late, and some have masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Draws, LateEdits, Selection, StepResult
from llmd.api.draws import HOST, SAMPLED
from llmd.api.step import Int32
from llmd.testing.workload import Workload

Places = Sequence[tuple[int, int]]
"""(sequence, position) of each output row."""

_INF = math.inf
_FILTERS = (
    (1.0, 1.0, _INF, 1.0, -_INF, -_INF),
    (0.7, 0.7, _INF, 1.0, -_INF, -_INF),
    (1.5, 1.5, 5.0, 1.0, -_INF, -_INF),
    (1.3, 1.3, _INF, 0.9, -_INF, -_INF),
    (1.0, 2.0, _INF, 0.8, -_INF, -_INF),
    (2.0, 2.0, _INF, 1.0, -2.5, -_INF),
    (1.2, 1.2, 90.0, 0.95, -4.0, -_INF),
    (1.0, 0.8, 40.0, 0.97, -_INF, -3.0),
)
"""Columns of `Draws.table`: each filter alone, and all together before and after top-p."""


def plain_selection(rows: Sequence[int] | Int32) -> Selection:
    """Return a selection of rows of a step, without edits, masks and draws."""
    count = len(rows)
    none = np.zeros(0, np.int32)
    return Selection(
        rows=np.array(rows, np.int32),
        edit_offsets=np.zeros(count + 1, np.int32),
        edit_ids=none,
        edit_factors=none.astype(np.float32),
        edit_biases=none.astype(np.float32),
        masked=np.zeros(count, np.bool_),
        temperatures=np.ones(count, np.float32),
        targets=np.full(count, -1, np.int32),
    )


def make_selection(workload: Workload, places: Places) -> Selection:
    """Return a selection of every row, with edits and draws that depend only on the place."""
    selection = _select_edited(workload, places)
    return _with_draws(selection, places) if workload.draws else selection


def make_late_edits(workload: Workload, places: Places) -> LateEdits:
    """Return the edits of the late rows of `make_selection`."""
    return _late_edits(_select_edited(workload, places), _late_rows(places))


def _select_edited(workload: Workload, places: Places) -> Selection:
    count, vocab = len(places), workload.plan.vocab_size
    per_row = 5 if workload.edits else 0
    draws = [np.random.default_rng([11, *place]) for place in places]
    ids = [np.sort(d.choice(vocab, per_row, replace=False)) for d in draws]
    return Selection(
        rows=np.arange(count, dtype=np.int32),
        edit_offsets=np.arange(count + 1, dtype=np.int32) * np.int32(per_row),
        edit_ids=np.concatenate([*ids, np.zeros(0)]).astype(np.int32),
        edit_factors=np.tile(np.array([1.0, 1.3, 2.0, 1.0, 0.5], np.float32)[:per_row], count),
        edit_biases=np.tile(np.array([-3.0, 0.0, 1.0, 6.0, 0.0], np.float32)[:per_row], count),
        masked=np.full(count, workload.masks),
        temperatures=np.array([0.5 + 0.25 * (p % 4) for _, p in places], np.float32),
        targets=np.array([(s + 3 * p) % vocab if workload.edits else -1 for s, p in places], np.int32),
        raw_top=7 if workload.edits else 0,
    )


def make_masks(workload: Workload, places: Places) -> NDArray[np.uint32]:
    """Return masks of these places that allow about half of the vocabulary and always id 0."""
    vocab = workload.plan.vocab_size
    words = -(-vocab // 32)
    masks = [np.random.default_rng([13, *p]).integers(0, 1 << 32, words, dtype=np.uint32) for p in places]
    return np.array(masks, np.uint32) | np.eye(1, words, dtype=np.uint32)


def masked_places(selection: Selection, places: Places) -> Places:
    """Return the places of the masked rows of a selection."""
    return [place for place, is_masked in zip(places, selection.masked, strict=True) if is_masked]


def _with_draws(selection: Selection, places: Places) -> Selection:
    """Return the selection with draws, some rows masked, and some late: without their edits."""
    late = _late_rows(places)
    kept = np.repeat(~late, np.diff(selection.edit_offsets))
    counts = np.where(late, 0, np.diff(selection.edit_offsets))
    return msgspec.structs.replace(
        selection,
        edit_offsets=_offsets(counts),
        edit_ids=selection.edit_ids[kept],
        edit_factors=selection.edit_factors[kept],
        edit_biases=selection.edit_biases[kept],
        masked=np.array([(s + p) % 3 == 1 for s, p in places], np.bool_),
        draws=_make_draws(places),
        late=late,
    )


def _late_rows(places: Places) -> NDArray[np.bool_]:
    """Return which rows are late."""
    return np.array([(s + p // 2) % 3 == 1 for s, p in places], np.bool_)


def _late_edits(selection: Selection, late: NDArray[np.bool_]) -> LateEdits:
    """Return the edits of some rows of a selection."""
    kept = np.repeat(late, np.diff(selection.edit_offsets))
    return LateEdits(
        offsets=_offsets(np.diff(selection.edit_offsets)[late]),
        ids=selection.edit_ids[kept],
        factors=selection.edit_factors[kept],
        biases=selection.edit_biases[kept],
    )


def _make_draws(places: Places) -> Draws:
    """Return draws that depend only on the place; most rows are sampled."""
    generators = [np.random.default_rng([17, *place]) for place in places]
    kinds = np.array([min(int(one.integers(6)), SAMPLED) for one in generators], np.int8)
    return Draws(
        kinds=kinds,
        table=np.array([_FILTERS[one.integers(len(_FILTERS))] for one in generators]).reshape(-1, 6),
        seeds=np.array([one.integers(2**64, dtype=np.uint64) for one in generators], np.uint64),
        positions=np.array([position + 1 for _, position in places], np.uint64),
        choices=np.array([sequence for sequence, _ in places], np.uint64),
        token_only=(kinds != HOST) & [bool(one.integers(2)) for one in generators],
    )


def defined_fields(result: StepResult, selection: Selection, row: int) -> dict[str, NDArray[np.generic]]:
    """Return copies of the fields of an output row that the contract defines, by name."""
    only_token = selection.draws is not None and selection.draws.token_only[row]
    names = ("tokens",) if only_token else StepResult.__struct_fields__
    fields = {name: getattr(result, name) for name in names}
    return {name: np.array(field[row]) for name, field in fields.items() if field is not None}


def _offsets(counts: NDArray[np.integer]) -> NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
