"""DRY against its definition, written out for one pair of positions at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.samplers import Dry
from llmd.sampling.dry import MAX_PENALTY, RepetitionPenalty

TOKENS = st.lists(st.integers(0, 3), max_size=60)


def by_definition(params: Dry, tokens: list[int]) -> dict[int, float]:
    """Return for each token the penalty of the longest repetition that it would continue."""
    window = tokens[-params.last_n :] if params.last_n else []
    reach = 0
    while reach < len(tokens) and not ends_with_breaker(params, tokens[: len(tokens) - reach]):
        reach += 1
    found: dict[int, float] = {}
    for place in range(1, len(window)):
        length = 0
        while length < min(place, reach) and window[place - 1 - length] == window[len(window) - 1 - length]:
            length += 1
        if length >= params.allowed_len:
            penalty = params.multiplier * params.base ** (length - params.allowed_len)
            found[window[place]] = max(found.get(window[place], 0.0), penalty)
    return found


def ends_with_breaker(params: Dry, tokens: list[int]) -> bool:
    runs = [(token,) for token in params.break_ids] + list(params.break_runs)
    return any(tuple(tokens[-len(run) :]) == run for run in runs)


@given(
    start=TOKENS,
    appended=TOKENS,
    allowed_len=st.integers(1, 4),
    last_n=st.sampled_from([0, 1, 5, 20, 1000]),
    breakers=st.sampled_from([((), ()), ((3,), ()), ((), ((2, 1),)), ((3,), ((0, 1, 0), (1, 2)))]),
)
def test_penalties_are_those_of_the_definition(
    start: list[int],
    appended: list[int],
    allowed_len: int,
    last_n: int,
    breakers: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]],
) -> None:
    params = Dry(0.5, 1.2, allowed_len, last_n, *breakers)
    penalty = RepetitionPenalty(params, start)
    for token in appended:
        penalty.append(token)
    assert penalty.penalties() == pytest.approx(by_definition(params, start + appended))


def test_the_token_after_the_longest_repetition_is_penalised_most() -> None:
    penalty = RepetitionPenalty(Dry(1.0, 2.0, 2, 100), [1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3])
    assert penalty.penalties() == {4: 2.0, 5: 1.0}


def test_a_breaker_ends_what_counts_as_repeated() -> None:
    tokens = [1, 2, 3, 4, 1, 2, 3]
    assert RepetitionPenalty(Dry(1.0, 2.0, 2, 100), tokens).penalties() == {4: 2.0}
    assert RepetitionPenalty(Dry(1.0, 2.0, 2, 100, break_ids=(1,)), tokens).penalties() == {4: 1.0}
    assert RepetitionPenalty(Dry(1.0, 2.0, 2, 100, break_ids=(2,)), tokens).penalties() == {}


def test_endless_repetitions_stay_finite_and_cheap() -> None:
    for base in (1.0, 1.75, 1e6):
        found = RepetitionPenalty(Dry(0.8, base, 2, 100_000), [5] * 20_000).penalties()
        assert 0.8 <= found[5] <= MAX_PENALTY
