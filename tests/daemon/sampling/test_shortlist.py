from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from llmd.sampling.shortlist import Moments, Shortlist, of_candidates, of_row

LOGITS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, -math.inf]), st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
)


def shortlist(logits: list[float], *, ends: bool, logsumexp: float | None = None) -> Shortlist:
    return Shortlist(np.arange(len(logits), dtype=np.int32), np.array(logits), ends, logsumexp)


@given(npst.arrays(np.float32, st.integers(1, 50), elements=LOGITS))
def test_a_row_is_ordered_as_by_a_stable_sort(row: np.ndarray) -> None:
    listed = of_row(row)
    order = [i for i in np.argsort(-row, kind="stable").tolist() if row[i] > -np.inf]
    assert listed.ids.tolist() == order
    assert listed.logits.tolist() == row[order].astype(np.float64).tolist()
    assert listed.ends


def test_a_forbidden_candidate_tells_that_none_follows() -> None:
    ids, edited = np.array([4, 2, 9], np.int32), np.array([1.0, 0.5, -np.inf], np.float32)
    assert of_candidates(ids, edited).ids.tolist() == [4, 2]
    assert of_candidates(ids, edited).ends
    assert not of_candidates(ids[:2], edited[:2]).ends


def test_probabilities_are_shares_of_all_that_is_in_play() -> None:
    logits = [math.log(4.0), math.log(2.0)]
    ended = shortlist(logits, ends=True).probabilities()
    assert ended == pytest.approx([2 / 3, 1 / 3])
    assert shortlist(logits, ends=False, logsumexp=math.log(8.0)).probabilities() == pytest.approx(
        [0.5, 0.25]
    )
    assert shortlist(logits, ends=False).probabilities() is None


@pytest.mark.parametrize("logsumexp", [-1e30, 0.0, 1e30])
def test_a_log_sum_exp_that_cannot_be_gives_no_probability_above_one(logsumexp: float) -> None:
    found = shortlist([5.0, 4.0], ends=False, logsumexp=logsumexp).probabilities()
    assert found is not None
    assert float(found.sum()) <= 1.0 + 1e-12


def test_without_the_first_the_rest_has_the_rest_of_the_mass() -> None:
    listed = shortlist([math.log(4.0), math.log(2.0)], ends=False, logsumexp=math.log(8.0))
    rest = listed.without_first(1)
    assert rest is not None
    assert rest.ids.tolist() == [1]
    assert rest.probabilities() == pytest.approx([0.5])
    assert listed.divided(2.0, None).without_first(1) is None


def test_a_rest_too_small_to_be_known_is_not_guessed() -> None:
    listed = shortlist([10.0, 0.0], ends=False, logsumexp=10.0 + 1e-4)
    assert listed.without_first(1) is None


def test_a_whole_list_knows_its_moments_and_another_those_that_came_with_it() -> None:
    logits = np.log([0.5, 0.25, 0.25]).tolist()
    whole = shortlist(logits, ends=True)
    assert whole.entropy() == pytest.approx(1.5 * math.log(2))
    assert whole.deviation() == pytest.approx(np.std(logits))
    assert whole.count() == 3
    part = shortlist(logits[:2], ends=False, logsumexp=0.0)
    assert (part.entropy(), part.deviation(), part.count()) == (None, None, None)
    assert part.surprises() == pytest.approx([math.log(2), math.log(4)])
    assert shortlist(logits[:2], ends=False).surprises() is None
    told = msgspec.structs.replace(part, moments=Moments(3, 0.3, 1.04))
    assert (told.entropy(), told.deviation(), told.count()) == (1.04, 0.3, 3)


def test_moments_follow_a_temperature_and_no_cut() -> None:
    moments = Moments(9, 0.6, 1.0)
    listed = msgspec.structs.replace(shortlist([2.0, 1.0], ends=False, logsumexp=3.0), moments=moments)
    halved = listed.divided(2.0, None)
    assert (halved.count(), halved.deviation(), halved.entropy()) == (9, 0.3, None)
    for cut in (listed.first(1), listed.pick(np.array([1])), listed.without_first(1)):
        assert cut is not None
        assert cut.moments is None
