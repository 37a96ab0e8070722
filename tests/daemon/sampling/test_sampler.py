"""Drawing from candidates gives the distribution that the formula gives over the whole row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api.messages import SamplingParams
from llmd.sampling.sampler import draw

VOCAB = 200


def make_row(seed: int, spread: float = 2.0) -> np.ndarray:
    return (spread * np.random.default_rng(seed).standard_normal(VOCAB)).astype(np.float32)


def closed_form(row: np.ndarray, params: SamplingParams) -> np.ndarray:
    """The distribution over the vocabulary, by the definition of each filter in turn."""
    order = np.argsort(-row, kind="stable")
    p = np.exp((row[order].astype(np.float64) - row.max()) / params.temperature)
    p /= p.sum()
    keep = np.ones(VOCAB, bool)
    if params.top_k:
        keep[params.top_k :] = False
    if params.top_p < 1:
        share = np.where(keep, p, 0)
        share /= share.sum()
        keep &= np.cumsum(share) - share < params.top_p
    keep &= p >= params.min_p * p[0]
    p = np.where(keep, p, 0)
    out = np.zeros(VOCAB)
    out[order] = p / p.sum()
    return out


def draw_from(row: np.ndarray, params: SamplingParams, position: int, kept: int = 64) -> tuple[int, bool]:
    """Return the token and whether the full row was fetched."""
    fetched = []

    def fetch() -> np.ndarray:
        fetched.append(True)
        return row

    order = np.argsort(-row, kind="stable")[:kept].astype(np.int32)
    scaled = row.astype(np.float64) / (params.temperature or 1.0)
    lse = float(np.log(np.exp(scaled - scaled.max()).sum()) + scaled.max())
    return draw(order, row[order], lse, params, position, fetch), bool(fetched)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 3.0},
        {"top_k": 5},
        {"top_k": 100},
        {"top_p": 0.5},
        {"top_p": 0.97, "temperature": 3.0},
        {"min_p": 0.1},
        {"min_p": 0.05, "temperature": 4.0},
        {"top_k": 20, "top_p": 0.8, "min_p": 0.02},
        {"top_k": 120, "top_p": 0.9, "temperature": 3.0},
    ],
    ids=str,
)
def test_frequencies_follow_the_closed_form(changes: dict[str, Any]) -> None:
    row, draws = make_row(1), 6000
    params = SamplingParams(seed=3, **changes)
    counts = Counter(draw_from(row, params, position)[0] for position in range(draws))
    expected = closed_form(row, params)
    assert all(expected[token] > 0 for token in counts)
    # Chi-squared over cells of at least 5 expected draws, at 6 standard deviations of its own distribution.
    cells = [(counts[t], expected[t] * draws) for t in range(VOCAB) if expected[t] * draws >= 5]
    chi2 = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    assert chi2 < len(cells) + 6 * (2 * len(cells)) ** 0.5


@settings(max_examples=500)
@given(
    seed=st.integers(0, 2**64 - 1),
    row_seed=st.integers(0, 50),
    temperature=st.sampled_from([0.3, 1.0, 4.0]),
    top_k=st.sampled_from([0, 1, 10, 64, 65, 150, 500]),
    top_p=st.sampled_from([1.0, 0.99, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.001, 0.3, 1.0]),
)
def test_the_number_of_candidates_never_changes_the_token(
    seed: int, row_seed: int, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    row = make_row(row_seed)
    params = SamplingParams(seed=seed, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    whole, _ = draw_from(row, params, 0, kept=VOCAB)
    assert draw_from(row, params, 0, kept=64)[0] == whole
    assert draw_from(row, params, 0, kept=3)[0] == whole


def test_greedy_takes_the_first_candidate() -> None:
    row = make_row(2)
    assert draw_from(row, SamplingParams(seed=0, temperature=0.0), 0) == (int(row.argmax()), False)


def test_greedy_breaks_ties_by_the_lower_id() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[[40, 7, 90]] = 5.0
    assert draw_from(row, SamplingParams(seed=0, temperature=0.0), 0)[0] == 7


def test_the_full_row_is_not_fetched_where_the_filters_end_within_the_candidates() -> None:
    row = make_row(3)
    params = SamplingParams(seed=1, top_k=40, top_p=0.9)
    assert not any(draw_from(row, params, position)[1] for position in range(200))


def test_a_flat_distribution_needs_the_full_row_now_and_then() -> None:
    row = make_row(4, spread=0.01)
    fetched = [draw_from(row, SamplingParams(seed=1), position)[1] for position in range(400)]
    assert 0.5 < np.mean(fetched) < 0.85  # 136 of 200 tokens lie beyond the candidates


def test_choices_of_a_request_draw_different_tokens() -> None:
    row = make_row(5)
    drawn = {choice: draw_from(row, SamplingParams(seed=9, choice=choice), 0)[0] for choice in range(12)}
    assert len(set(drawn.values())) > 3


@pytest.mark.parametrize("temperature", [1e-4, 1e-3, 0.3])
def test_a_log_sum_exp_of_float32_never_lets_a_token_without_probability_through(temperature: float) -> None:
    row = make_row(6)
    order = np.argsort(-row, kind="stable")[:64].astype(np.int32)
    params = SamplingParams(seed=2, temperature=temperature)
    scaled = row.astype(np.float64) / temperature
    lse = float(np.log(np.exp(scaled - scaled.max()).sum()) + scaled.max())
    rounding = max(1e-3, float(np.spacing(np.float32(lse))))
    expected = closed_form(row, params)
    for error in (-rounding, rounding):
        drawn = {draw(order, row[order], lse + error, params, place, lambda: row) for place in range(2000)}
        assert all(expected[token] > 1e-12 for token in drawn)


def test_so_cold_that_only_ties_could_be_drawn_is_greedy() -> None:
    row = make_row(7)
    row[[90, 7]] = 20.0
    order = np.argsort(-row, kind="stable")[:64].astype(np.int32)
    for temperature in (1e-6, 1e-50, 1e-310):
        params = SamplingParams(seed=1, temperature=temperature)
        assert {draw(order, row[order], 0.0, params, place, lambda: row) for place in range(20)} == {7}


@pytest.mark.parametrize("logit", [np.nan, np.inf])
@pytest.mark.parametrize("changes", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.1}], ids=str)
def test_a_row_that_is_not_finite_gives_its_best_candidate(logit: float, changes: dict[str, Any]) -> None:
    row = np.full(VOCAB, logit, np.float32)
    order = np.arange(64, dtype=np.int32)
    drawn = draw(order, row[order], float(logit), SamplingParams(seed=1, **changes), 0, lambda: row)
    assert drawn == 0
