"""Draws from candidates, and from whole rows as the contract defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api.draws import NUM_COLUMNS, CommonRows, best_first, draw_whole_rows
from llmd.api.philox import uniform
from llmd.api.random import Purpose
from llmd.api.samplers import DEFAULT_ORDER, LLAMA_CPP_ORDER, OLLAMA_ORDER, SamplingParams
from llmd.sampling.common import common_chain
from llmd.sampling.sampler_chain import RowContext, draw, selection_temperature
from llmd.sampling.shortlist import of_row
from tests.daemon.sampling.closed_form import make_row, step_result

COMMON: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"top_k": 3},
    {"top_k": 100, "temperature": 3.0},
    {"top_p": 0.8, "temperature": 1.4},
    {"min_p": 0.05, "temperature": 2.0},
    {"top_k": 30, "top_p": 0.9, "min_p": 0.02, "temperature": 1.2},
]
orders = pytest.mark.parametrize(
    "order", [DEFAULT_ORDER, LLAMA_CPP_ORDER, OLLAMA_ORDER], ids=["vllm", "llama.cpp", "ollama"]
)
COUNT = 300


def numbers(seed: int) -> np.ndarray:
    return np.array([uniform(seed, n, 0, Purpose.SAMPLE) for n in range(COUNT)])


def make_table(params: SamplingParams) -> np.ndarray:
    common = common_chain(params)
    assert common is not None
    return np.tile(common.columns(), (COUNT, 1))


@orders
@pytest.mark.parametrize("changes", COMMON, ids=str)
def test_rows_draw_what_the_chain_draws_one_by_one(changes: dict[str, Any], order: Any) -> None:
    params = SamplingParams(seed=8, order=order, **changes)
    rows = [make_row(seed) for seed in range(COUNT)]
    result = step_result(rows, [selection_temperature(params)] * len(rows))
    index = CommonRows(make_table(params), numbers(8)).draw(result.edited, result.edited_logsumexp)
    known = np.flatnonzero(index < 64).tolist()
    for n in known:
        drawn = draw(of_row(rows[n]), params, RowContext(n, len(rows[n]), 1.0, 0.0))
        assert drawn is not None
        assert result.ids[n, index[n]] == drawn.token
    assert bool(known) is (params.top_k <= 64)


def with_ties_and_forbidden(seed: int) -> np.ndarray:
    """Return a row in which many logits are equal and some are -inf."""
    row = np.round(make_row(seed), 1)
    row[np.random.default_rng(seed).integers(0, len(row), seed % 150)] = -np.inf
    return row


@orders
@pytest.mark.parametrize("changes", [*COMMON, {"top_p": 0.99, "temperature": 2.5}], ids=str)
@pytest.mark.parametrize("make", [make_row, with_ties_and_forbidden])
def test_whole_rows_draw_what_the_chain_draws_from_them(
    make: Any, changes: dict[str, Any], order: Any
) -> None:
    params = SamplingParams(seed=9, order=order, **changes)
    rows = CommonRows(make_table(params), numbers(9))
    for n in range(COUNT):
        row = make(n)
        drawn = draw(of_row(row), params, RowContext(n, len(row), 1.0, 0.0))
        assert drawn is not None
        assert rows.draw_whole(n, row) == drawn.token


@orders
@pytest.mark.parametrize("changes", COMMON, ids=str)
def test_candidates_and_whole_rows_draw_the_same(changes: dict[str, Any], order: Any) -> None:
    params = SamplingParams(seed=10, order=order, **changes)
    rows, table, u = [make_row(seed) for seed in range(COUNT)], make_table(params), numbers(10)
    result = step_result(rows, [selection_temperature(params)] * len(rows))
    index = CommonRows(table, u).draw(result.edited, result.edited_logsumexp)
    whole = draw_whole_rows(np.array([row[best_first(row)] for row in rows]), table, u)
    known = index < 64
    assert index[known].tolist() == whole[known].tolist()


@pytest.mark.parametrize("best", [-np.inf, np.inf, np.nan])
def test_a_row_without_a_finite_best_logit_takes_the_first_token(best: float) -> None:
    ordered = np.array([[best, -np.inf, -np.inf], [best, best, -np.inf], [0.0, 0.0, 0.0]], np.float32)
    table = np.tile((1.0, 2.0, 2.0, 0.9, -1.0, -0.5), (3, 1))
    assert draw_whole_rows(ordered, table, np.full(3, 0.99)).tolist() == [0, 0, 1]


def test_a_number_below_a_border_draws_the_token_before_it() -> None:
    ordered = np.log(np.array([[4.0, 2.0, 1.0, 1.0]])).astype(np.float32)
    table = np.tile((1.0, 1.0, np.inf, 1.0, -np.inf, -np.inf), (6, 1))
    u = np.array([0.499, 0.501, 0.749, 0.751, 0.876, 0.999])
    assert draw_whole_rows(np.repeat(ordered, 6, axis=0), table, u).tolist() == [0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("parameters", "last"),
    [
        ((1.0, 1.0, 2, 1.0, -np.inf, -np.inf), 1),
        ((1.0, 1.0, np.inf, 0.6, -np.inf, -np.inf), 1),
        ((1.0, 1.0, np.inf, 1.0, np.log(0.2), -np.inf), 3),
        ((1.0, 1.0, np.inf, 1.0, np.log(0.3), -np.inf), 1),
        ((2.0, 1.0, np.inf, 1.0, -np.inf, np.log(0.6)), 1),
        ((1.0, 1.0, 3, 0.8, -np.inf, -np.inf), 1),
        ((1.0, 1.0, np.inf, 0.8, -np.inf, -np.inf), 2),
        ((1.0, 1.0, np.inf, 0.8, np.log(0.3), -np.inf), 1),
        ((1.0, 1.0, np.inf, 0.8, -np.inf, np.log(0.3)), 1),
    ],
)
def test_each_filter_keeps_the_tokens_of_the_definition(parameters: tuple[float, ...], last: int) -> None:
    """The weights are 4, 2, 1, 1 eighths; a random number just below 1 draws the last token that is kept."""
    ordered = np.log(np.array([[4.0, 2.0, 1.0, 1.0]])).astype(np.float32)
    assert len(parameters) == NUM_COLUMNS
    assert draw_whole_rows(ordered, np.array([parameters]), np.array([0.9999])).tolist() == [last]


def test_tokens_are_in_order_of_logit_then_id() -> None:
    row = np.array([0.0, -0.0, 3.0, -np.inf, 3.0, -1.5, np.inf, -2.0, 1e-40, -np.inf], np.float32)
    assert best_first(row).tolist() == [6, 2, 4, 8, 0, 1, 5, 7, 3, 9]
    rows = np.stack([with_ties_and_forbidden(seed) for seed in range(20)])
    assert best_first(rows).tolist() == np.argsort(-rows, axis=1, kind="stable").tolist()
