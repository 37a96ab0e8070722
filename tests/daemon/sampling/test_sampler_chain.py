from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from llmd.api.results import Logprobs
from llmd.api.samplers import LLAMA_CPP_ORDER, DynamicTemperature, Mirostat, SamplingParams, Xtc
from llmd.sampling.sampler import DrawnTokens, Sampler
from llmd.sampling.sampler_chain import (
    RowContext,
    active_order,
    certain,
    draw,
    is_greedy,
    selection_temperature,
)
from llmd.sampling.shortlist import of_candidates, of_row
from tests.daemon.sampling.closed_form import VOCAB, closed_form, make_row, step_result

LAST: dict[str, Any] = {"order": LLAMA_CPP_ORDER, "temperature": 0.7}


def params(**changes: Any) -> SamplingParams:
    return SamplingParams(seed=0, **changes)


def test_only_samplers_that_change_something_run() -> None:
    assert active_order(params()) == ()
    assert active_order(params(temperature=0.5, top_p=0.9, min_p=0.1)) == ("temperature", "min_p", "top_p")
    assert active_order(params(typical_p=0.9, top_n_sigma=1.0, xtc=Xtc(0.0, 0.1))) == ("top_n_sigma", "typ_p")
    assert active_order(params(top_p=0.9, top_k=3, **LAST)) == ("top_k", "top_p", "temperature")
    assert active_order(params(top_p=0.9, order=("top_k",))) == ()
    assert active_order(params(top_p=0.9, mirostat=Mirostat(2))) == ("temperature",)


@pytest.mark.parametrize(
    ("changes", "temperature"),
    [
        ({"temperature": 0.7}, 0.7),
        ({"temperature": 0.0}, 1.0),
        ({"temperature": 0.7, "top_p": 0.5}, 0.7),
        ({"temperature": 0.7, "dynamic_temperature": DynamicTemperature(0.1)}, 1.0),
        ({"temperature": 0.7, "mirostat": Mirostat(2)}, 0.7),
        (LAST, 0.7),
        ({"top_k": 5, "min_p": 0.1, **LAST}, 0.7),
        ({"top_p": 0.5, **LAST}, 1.0),
        ({"typical_p": 0.5, **LAST}, 1.0),
        ({"xtc": Xtc(0.5, 0.1), **LAST}, 1.0),
    ],
    ids=str,
)
def test_the_log_sum_exp_is_asked_for_at_the_temperature_that_needs_it(
    changes: dict[str, Any], temperature: float
) -> None:
    assert selection_temperature(params(**changes)) == temperature


def test_a_temperature_of_zero_is_greedy_unless_it_is_dynamic() -> None:
    assert is_greedy(params(temperature=0.0, top_p=0.5))
    assert not is_greedy(params(temperature=0.0, dynamic_temperature=DynamicTemperature(1.0)))


def test_a_draw_from_candidates_is_that_from_the_row_or_none() -> None:
    row = make_row(4, spread=1.0)
    result = step_result([row], [1.0], kept=20)
    found = []
    for position in range(200):
        place = RowContext(position, len(row), 1.0, float(result.edited_logsumexp[0]))
        whole = draw(of_row(row), params(), place)
        listed = draw(of_candidates(result.ids[0], result.edited[0]), params(), place)
        assert listed in (None, whole)
        found.append(listed is None)
    assert 0 < sum(found) < 200


FINAL: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0, "min_p": 0.05, "order": LLAMA_CPP_ORDER},
    {"top_k": 2},
    {"top_k": 120, "top_p": 0.9, "temperature": 3.0},
    {"typical_p": 0.3},
    {"top_n_sigma": 0.8},
    {"xtc": Xtc(1.0, 0.05), "temperature": 2.0},
    {"dynamic_temperature": DynamicTemperature(0.8)},
    {"temperature": 2.0, "top_k": 3, "order": ()},
]


def draw_rows(row: np.ndarray, wanted: SamplingParams, positions: range, kept: int) -> DrawnTokens:
    """Return the draws of a row at each position, all in one step."""
    sampler = Sampler(VOCAB)
    for place in positions:
        sampler.add(place, wanted, [1])
    result = step_result([row] * len(positions), [selection_temperature(wanted)] * len(positions), kept)
    return sampler.draw(sampler.prepare(positions, positions), result, lambda _: row)


@pytest.mark.parametrize("kept", [VOCAB, 64, 3])
@pytest.mark.parametrize("changes", FINAL, ids=str)
def test_final_logprobs_are_those_of_the_closed_form_best_first(changes: dict[str, Any], kept: int) -> None:
    row, positions = make_row(7), range(20)
    drawn_from = params(**changes)
    expected = closed_form(row, drawn_from)
    draws = draw_rows(row, params(**changes, logprobs=5, post_sampling=True), positions, kept)
    assert draws.tokens == draw_rows(row, drawn_from, positions, kept).tokens
    possible = [int(token) for token in np.argsort(-row, kind="stable") if expected[token] > 0]
    for place, token in enumerate(draws.tokens):
        told = draws.logprobs[place]
        assert math.exp(told.chosen) == pytest.approx(expected[token], rel=1e-4)
        assert list(told.top_ids) == possible[:5]
        assert np.exp(told.top) == pytest.approx(expected[possible[:5]], rel=1e-4)


def test_final_logprobs_of_mirostat_are_those_that_its_state_left() -> None:
    wanted = params(mirostat=Mirostat(2, tau=2.0), logprobs=20, post_sampling=True)
    told = draw_rows(make_row(7), wanted, range(1), 64).logprobs[0]
    assert 1 < len(told.top_ids) < 20
    assert sum(np.exp(told.top)) == pytest.approx(1.0)


@pytest.mark.parametrize("changes", [{"logprobs": 2}, {"post_sampling": True}], ids=str)
def test_final_logprobs_are_not_made_where_nobody_wants_them(changes: dict[str, Any]) -> None:
    assert not draw_rows(make_row(7), params(**changes), range(2), 64).logprobs


def test_a_token_that_is_taken_without_a_draw_is_certain() -> None:
    assert certain(7, params(logprobs=3)) == Logprobs(0.0, (7,), (0.0,))
    assert certain(7, params(logprobs=0)) == Logprobs(0.0, (), ())
