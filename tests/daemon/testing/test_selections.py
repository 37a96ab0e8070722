"""The rows that the draw cases select have every kind, and each kind with late edits and masks."""

from __future__ import annotations

import numpy as np

from llmd.api.draws import GREEDY, HOST, SAMPLED
from llmd.testing.conformance import all_cases
from llmd.testing.recorder import Recorder
from llmd.testing.runs import run
from llmd.testing.selections import make_late_edits, make_selection
from llmd.testing.workload import ragged

CASE = next(case for case in all_cases() if case.name == "head/draws")
PLACES = [(s, p) for s, tokens in enumerate(CASE.tokens) for p in range(len(tokens))]
SELECTION = make_selection(CASE, PLACES)


def test_rows_have_every_kind_with_and_without_late_edits_and_masks() -> None:
    draws, late = SELECTION.draws, SELECTION.late
    assert draws is not None
    assert late is not None
    found = set(zip(draws.kinds.tolist(), late.tolist(), SELECTION.masked.tolist(), strict=True))
    assert {kind for kind, _, _ in found} == {HOST, GREEDY, SAMPLED}
    for flags in [(False, False), (True, False), (False, True), (True, True)]:
        assert (SAMPLED, *flags) in found
    assert len({tuple(row) for row in draws.table[draws.kinds == SAMPLED].tolist()}) == 8
    assert set(draws.token_only[draws.kinds == SAMPLED].tolist()) == {False, True}


def test_late_rows_have_their_edits_apart() -> None:
    edits = make_late_edits(CASE, PLACES)
    assert SELECTION.late is not None
    assert (np.diff(SELECTION.edit_offsets) > 0).tolist() == (~SELECTION.late).tolist()
    assert (np.diff(edits.offsets) > 0).tolist() == [True] * int(SELECTION.late.sum())


def test_of_a_row_that_needs_its_token_only_the_token_is_kept() -> None:
    recorder = Recorder()
    outcome = run(recorder, CASE, ragged(CASE))
    assert any(step.edits is not None for step in recorder.steps)
    draws = SELECTION.draws
    assert draws is not None
    only = {place for place, token_only in zip(PLACES, draws.token_only, strict=True) if token_only}
    assert {place for place, fields in outcome.picked.items() if set(fields) == {"tokens"}} == only
