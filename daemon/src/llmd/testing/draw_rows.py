"""Selections whose rows the device draws: a mix of kinds, filters, late edits and masks, by place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Draws, LateEdits, Selection, StepResult
from llmd.api.draws import HOST, SAMPLED

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


def with_draws(selection: Selection, places: Places) -> Selection:
    """Return the selection with draws, some rows masked, and some late: without their edits."""
    late = late_rows(places)
    kept = np.repeat(~late, np.diff(selection.edit_offsets))
    counts = np.where(late, 0, np.diff(selection.edit_offsets))
    return msgspec.structs.replace(
        selection,
        edit_offsets=_offsets(counts),
        edit_ids=selection.edit_ids[kept],
        edit_factors=selection.edit_factors[kept],
        edit_biases=selection.edit_biases[kept],
        masked=np.array([(s + p) % 3 == 1 for s, p in places], np.bool_),
        draws=make_draws(places),
        late=late,
    )


def late_rows(places: Places) -> NDArray[np.bool_]:
    """Return which rows are late."""
    return np.array([(s + p // 2) % 3 == 1 for s, p in places], np.bool_)


def late_edits(selection: Selection, late: NDArray[np.bool_]) -> LateEdits:
    """Return the edits of some rows of a selection."""
    kept = np.repeat(late, np.diff(selection.edit_offsets))
    return LateEdits(
        offsets=_offsets(np.diff(selection.edit_offsets)[late]),
        ids=selection.edit_ids[kept],
        factors=selection.edit_factors[kept],
        biases=selection.edit_biases[kept],
    )


def make_draws(places: Places) -> Draws:
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
