"""Draws from candidates have the distribution of the formulas over the whole row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api.messages import SamplingParams
from llmd.api.samplers import (
    DEFAULT_ORDER,
    LLAMA_CPP_ORDER,
    OLLAMA_ORDER,
    DynamicTemperature,
    Mirostat,
    SamplerName,
    Xtc,
)
from llmd.sampling.sampler import Sampler
from llmd.sampling.sampler_chain import selection_temperature
from tests.daemon.sampling.closed_form import VOCAB, closed_form, make_row, step_result


def draw_many(
    row: np.ndarray, params: SamplingParams, positions: range, kept: int = 64
) -> tuple[list[int], int]:
    """Return a token for each position, all drawn in one step, and the number of fetched rows."""
    sampler, fetched = Sampler(len(row)), 0

    def fetch(_: int) -> np.ndarray:
        nonlocal fetched
        fetched += 1
        return row

    for place in positions:
        sampler.add(place, params, [1])
    result = step_result([row] * len(positions), [selection_temperature(params)] * len(positions), kept)
    return sampler.draw(sampler.prepare(positions, positions), result, fetch).tokens, fetched


def draw_one(row: np.ndarray, params: SamplingParams, position: int, kept: int = 64) -> tuple[int, bool]:
    """Return the token, and whether the whole row was fetched."""
    tokens, fetched = draw_many(row, params, range(position, position + 1), kept)
    return tokens[0], bool(fetched)


def assert_follows(row: np.ndarray, params: SamplingParams, draws: int = 3000) -> None:
    counts = Counter(draw_many(row, params, range(draws))[0])
    expected = closed_form(row, params)
    assert expected.sum() == pytest.approx(1.0)
    assert all(expected[token] > 0 for token in counts)
    # Chi-squared over cells of at least 5 expected draws, at 6 standard deviations of its own distribution.
    cells = [(counts[t], expected[t] * draws) for t in range(len(row)) if expected[t] * draws >= 5]
    chi2 = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    assert chi2 < len(cells) + 6 * (2 * len(cells)) ** 0.5


ALONE: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0},
    {"top_k": 5},
    {"top_k": 100},
    {"top_p": 0.5},
    {"top_p": 0.97, "temperature": 3.0},
    {"min_p": 0.1},
    {"min_p": 0.05, "temperature": 2.0},
    {"min_p": 0.05, "temperature": 4.0},
    {"typical_p": 0.3},
    {"typical_p": 0.95, "temperature": 3.0},
    {"top_n_sigma": 0.8},
    {"top_n_sigma": 2.5, "temperature": 2.0},
    {"xtc": Xtc(0.5, 0.05)},
    {"xtc": Xtc(1.0, 0.1), "temperature": 0.5},
    {"xtc": Xtc(0.7, 0.001), "temperature": 3.0},
    {"dynamic_temperature": DynamicTemperature(0.8)},
    {"dynamic_temperature": DynamicTemperature(2.0, 0.5), "temperature": 1.5},
]
TOGETHER: list[dict[str, Any]] = [
    {"top_k": 20, "top_p": 0.8, "min_p": 0.02},
    {"top_k": 120, "top_p": 0.9, "temperature": 3.0},
    {"top_p": 0.9, "min_p": 0.1, "temperature": 2.5},
    {"top_k": 40, "typical_p": 0.8, "top_p": 0.9, "temperature": 1.7},
    {"top_n_sigma": 1.5, "top_p": 0.95, "xtc": Xtc(0.5, 0.05), "temperature": 2.0},
    {"top_k": 30, "min_p": 0.02, "dynamic_temperature": DynamicTemperature(0.7), "temperature": 1.2},
]


@pytest.mark.parametrize("changes", ALONE, ids=str)
def test_frequencies_follow_the_closed_form_of_each_sampler(changes: dict[str, Any]) -> None:
    assert_follows(make_row(1), SamplingParams(seed=3, **changes))


@pytest.mark.parametrize(
    "order", [DEFAULT_ORDER, LLAMA_CPP_ORDER, OLLAMA_ORDER], ids=["vllm", "llama.cpp", "ollama"]
)
@pytest.mark.parametrize("changes", TOGETHER, ids=str)
def test_frequencies_follow_the_closed_form_in_each_order(
    changes: dict[str, Any], order: tuple[SamplerName, ...]
) -> None:
    assert_follows(make_row(2), SamplingParams(seed=5, order=order, **changes))


def test_orders_differ_where_a_filter_sees_the_temperature() -> None:
    row = make_row(2)
    first, last = (
        closed_form(row, SamplingParams(seed=0, order=order, top_p=0.9, temperature=2.5))
        for order in (DEFAULT_ORDER, LLAMA_CPP_ORDER)
    )
    assert np.count_nonzero(first) > 2 * np.count_nonzero(last)


def test_a_sampler_that_the_order_lacks_does_nothing() -> None:
    params = SamplingParams(seed=1, top_k=2, top_p=0.1, temperature=2.0, order=("top_k",))
    assert_follows(make_row(1), params, draws=1000)
    assert set(draw_many(make_row(1), params, range(200))[0]) == set(np.argsort(-make_row(1))[:2].tolist())


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**64 - 1),
    row_seed=st.integers(0, 50),
    temperature=st.sampled_from([0.3, 1.0, 4.0]),
    top_k=st.sampled_from([0, 1, 10, 64, 65, 150, 500]),
    top_p=st.sampled_from([1.0, 0.99, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.001, 0.3, 1.0]),
    others=st.sampled_from(
        [
            {},
            {"typical_p": 0.9},
            {"top_n_sigma": 1.0},
            {"xtc": Xtc(0.5, 0.02)},
            {"dynamic_temperature": DynamicTemperature(0.5)},
            {"mirostat": Mirostat(1)},
            {"mirostat": Mirostat(2)},
        ]
    ),
    order=st.one_of(
        st.sampled_from([DEFAULT_ORDER, LLAMA_CPP_ORDER, OLLAMA_ORDER]), st.permutations(DEFAULT_ORDER)
    ),
)
def test_the_number_of_candidates_never_changes_the_token(
    seed: int,
    row_seed: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    others: dict[str, Any],
    order: list[SamplerName],
) -> None:
    row = make_row(row_seed)
    params = SamplingParams(
        seed=seed,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        order=tuple(order),
        **others,
    )
    whole, _ = draw_one(row, params, 0, kept=VOCAB)
    assert draw_one(row, params, 0, kept=64)[0] == whole
    assert draw_one(row, params, 0, kept=3)[0] == whole


BATCH: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {},
    {"temperature": 0.7, "top_p": 0.9},
    {"temperature": 2.0, "top_p": 0.99},
    {"top_k": 7, "min_p": 0.1, "order": LLAMA_CPP_ORDER, "temperature": 3.0},
    {"typical_p": 0.5},
    {"mirostat": Mirostat(2, tau=3.0)},
    {"temperature": 0.3, "min_p": 0.01, "choice": 4},
]


def test_a_row_draws_the_same_alone_and_in_any_batch() -> None:
    rows = [make_row(seed) for seed in range(len(BATCH) * 6)]
    params = [SamplingParams(seed=n, **changes) for n, changes in enumerate(BATCH * 6)]
    temperatures = [selection_temperature(p) for p in params]
    positions = list(range(100, 100 + len(rows)))

    def drawn(chosen: list[int]) -> list[int]:
        sampler = Sampler(VOCAB)
        for n in chosen:
            sampler.add(n, params[n], [1])
        result = step_result([rows[n] for n in chosen], [temperatures[n] for n in chosen])
        assert sampler.temperatures(chosen).tolist() == np.array(temperatures, np.float32)[chosen].tolist()
        prepared = sampler.prepare(chosen, [positions[n] for n in chosen])
        found = sampler.draw(prepared, result, lambda row: rows[chosen[row]])
        return found.tokens

    everything = list(range(len(rows)))
    together = drawn(everything)
    assert [drawn([n])[0] for n in everything] == together
    assert drawn(everything[::3]) == together[::3]


def test_greedy_takes_the_first_candidate() -> None:
    row = make_row(2)
    assert draw_one(row, SamplingParams(seed=0, temperature=0.0), 0) == (int(row.argmax()), False)


def test_greedy_breaks_ties_by_the_lower_id() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[[40, 7, 90]] = 5.0
    assert draw_one(row, SamplingParams(seed=0, temperature=0.0), 0)[0] == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"top_k": 40, "top_p": 0.9},
        {"top_p": 0.9},
        {"min_p": 0.1, "top_p": 0.95, "order": LLAMA_CPP_ORDER, "temperature": 1.5},
        {"top_k": 40, "typical_p": 0.9, "xtc": Xtc(0.5, 0.1)},
        {"mirostat": Mirostat(2, tau=2.0)},
        {"typical_p": 0.4},
        {"typical_p": 0.4, "temperature": 0.7},
        {"typical_p": 0.3, "temperature": 2.0, "order": LLAMA_CPP_ORDER},
        {"top_n_sigma": 1.0, "temperature": 3.0},
        {"dynamic_temperature": DynamicTemperature(0.5), "top_k": 40},
        {"dynamic_temperature": DynamicTemperature(0.5), "min_p": 0.1},
        {"dynamic_temperature": DynamicTemperature(0.5), "top_n_sigma": 1.0},
    ],
    ids=str,
)
def test_the_full_row_is_not_fetched_where_the_filters_end_within_the_candidates(
    changes: dict[str, Any],
) -> None:
    assert draw_many(make_row(3), SamplingParams(seed=1, **changes), range(200))[1] == 0


def test_a_flat_distribution_needs_the_full_row_now_and_then() -> None:
    fetched = draw_many(make_row(4, spread=0.01), SamplingParams(seed=1), range(400))[1]
    assert 0.5 < fetched / 400 < 0.85  # 136 of 200 tokens are beyond the candidates


def test_choices_of_a_request_draw_different_tokens() -> None:
    row = make_row(5)
    drawn = [draw_one(row, SamplingParams(seed=9, choice=choice), 0)[0] for choice in range(12)]
    assert len(set(drawn)) > 3


@pytest.mark.parametrize("temperature", [1e-4, 1e-3, 0.3])
@pytest.mark.parametrize("others", [{}, {"xtc": Xtc(1.0, 0.5)}], ids=["common", "others"])
def test_a_log_sum_exp_of_float32_never_lets_a_token_without_probability_through(
    temperature: float, others: dict[str, Any]
) -> None:
    row = make_row(6)
    params = SamplingParams(seed=2, temperature=temperature, **others)
    result = step_result([row], [temperature])
    lse = result.edited_logsumexp[0]
    rounding = max(np.float32(1e-3), np.spacing(lse))
    expected = closed_form(row, params)
    for error in (-rounding, rounding):
        sampler = Sampler(VOCAB)
        sampler.add(1, params, [1])
        result.edited_logsumexp[0] = lse + error
        drawn = {
            sampler.draw(sampler.prepare([1], [place]), result, lambda _: row).tokens[0]
            for place in range(2000)
        }
        assert all(expected[token] > 1e-12 for token in drawn)


def test_so_cold_that_only_ties_could_be_drawn_is_greedy() -> None:
    row = make_row(7)
    row[[90, 7]] = 20.0
    for temperature in (1e-6, 1e-50, 1e-310):
        tokens, fetched = draw_many(row, SamplingParams(seed=1, temperature=temperature), range(20))
        assert (set(tokens), fetched) == ({7}, 0)


@pytest.mark.parametrize("changes", [{}, {"typical_p": 0.5}, {"mirostat": Mirostat(1)}], ids=str)
def test_a_row_without_a_distribution_gives_its_best_token(changes: dict[str, Any]) -> None:
    row = np.full(VOCAB, np.nan, np.float32)
    sampler = Sampler(VOCAB)
    sampler.add(1, SamplingParams(seed=1, **changes), [1])
    result = step_result([row], [1.0])
    draws = sampler.draw(sampler.prepare([1], [0]), result, lambda _: row)
    assert draws.tokens == [int(result.ids[0, 0])]
    sampler.accept(1, 0, draws)
    assert len(sampler.state(1)) == (8 if "mirostat" in changes else 0)


@pytest.mark.parametrize(
    "changes",
    [{}, {"typical_p": 0.99}, {"top_n_sigma": 3.0}, {"temperature": 50.0}, {"mirostat": Mirostat(1)}],
    ids=str,
)
def test_forbidden_tokens_are_never_drawn(changes: dict[str, Any]) -> None:
    row = np.full(VOCAB, -np.inf, np.float32)
    row[[5, 9, 100]] = [1.0, 1.1, 0.9]
    assert set(draw_many(row, SamplingParams(seed=1, **changes), range(300))[0]) == {5, 9, 100}


def test_a_state_that_is_handed_back_goes_on_with_the_same_tokens() -> None:
    params = SamplingParams(seed=4, mirostat=Mirostat(2, tau=2.5, eta=0.3), repetition_penalty=1.2)
    rows = [make_row(seed) for seed in range(20)]

    def go_on(sampler: Sampler, positions: range) -> list[tuple[int, bytes]]:
        found = []
        for place in positions:
            result = step_result([rows[place]], [1.0])
            draws = sampler.draw(sampler.prepare([1], [place]), result, lambda _, row=rows[place]: row)  # type: ignore[misc]
            sampler.accept(1, 0, draws)
            found.append((draws.tokens[0], sampler.state(1)))
        return found

    undisturbed = Sampler(VOCAB)
    undisturbed.add(1, params, [3])
    expected = go_on(undisturbed, range(20))
    assert len({state for _, state in expected}) == 20
    assert {len(state) for _, state in expected} == {8}
    again = Sampler(VOCAB)
    again.add(1, params, [3], [token for token, _ in expected[:8]], expected[7][1])
    assert go_on(again, range(8, 20)) == expected[8:]


def test_requests_come_and_go_beyond_the_first_slots() -> None:
    row, sampler = make_row(1), Sampler(VOCAB)
    expected = {n: draw_one(row, SamplingParams(seed=n), 0)[0] for n in range(200)}
    for n in range(100):
        sampler.add(n, SamplingParams(seed=n), [1])
    for n in range(0, 100, 2):
        sampler.remove(n)
    for n in range(100, 200):
        sampler.add(n, SamplingParams(seed=n), [1])
    sampler.remove(1000)
    live = [*range(1, 100, 2), *range(100, 200)]
    result = step_result([row] * len(live), [1.0] * len(live))
    assert sampler.draw(sampler.prepare(live, [0] * len(live)), result, lambda _: row).tokens == [
        expected[n] for n in live
    ]


def test_a_request_that_was_forgotten_on_the_way_disturbs_nobody() -> None:
    row, sampler = make_row(1), Sampler(VOCAB)
    for n in (1, 2):
        sampler.add(n, SamplingParams(seed=n, mirostat=Mirostat(2), presence_penalty=1.0), [1])
    sampler.remove(1)
    sampler.add(3, SamplingParams(seed=3), [1])
    result = step_result([row, row], [1.0, 1.0])
    alone = sampler.draw(sampler.prepare([2], [5]), step_result([row], [1.0]), lambda _: row)
    together = sampler.draw(sampler.prepare([1, 2], [5, 5]), result, lambda _: row)
    assert together.tokens == [int(row.argmax()), alone.tokens[0]]
    assert together.limits.keys() == {2}
    assert len(sampler.edits([1, 2])) == 2


def test_rows_without_edits_have_none() -> None:
    sampler = Sampler(VOCAB)
    sampler.add(1, SamplingParams(seed=0), [1])
    assert sampler.edits([1]) == []
    sampler.add(2, SamplingParams(seed=0, logit_bias=((3, 1.5),)), [1])
    (no_ids, _, _), (ids, factors, biases) = sampler.edits([1, 2])
    assert (no_ids.tolist(), ids.tolist(), factors.tolist(), biases.tolist()) == ([], [3], [1.0], [1.5])


def test_a_draw_changes_nothing_before_it_is_accepted() -> None:
    sampler = Sampler(VOCAB)
    sampler.add(1, SamplingParams(seed=0, mirostat=Mirostat(2)), [1])
    result = step_result([make_row(1)], [1.0])
    first, second = (sampler.draw(sampler.prepare([1], [7]), result, lambda _: make_row(1)) for _ in range(2))
    assert first == second
    assert len(first.limits) == 1


def test_a_fork_goes_on_from_what_its_parent_is() -> None:
    sampler = Sampler(VOCAB)
    sampler.add(1, SamplingParams(seed=3, temperature=0.7, frequency_penalty=0.5), [1], [2])
    sampler.fork(1, 2)
    sampler.append(2, 4)
    for request_id in (1, 2):
        assert sampler.edits_logits(request_id)
    (ids, _, biases), (forked_ids, _, forked_biases) = sampler.edits([1, 2])
    assert dict(zip(ids.tolist(), biases.tolist(), strict=True)) == {2: -0.5}
    assert dict(zip(forked_ids.tolist(), forked_biases.tolist(), strict=True)) == {2: -0.5, 4: -0.5}
    assert sampler.temperatures([1, 2]).tolist() == pytest.approx([0.7, 0.7])
    sampler.remove(1)
    assert sampler.edits_logits(2)
