"""Searches over tiny vocabularies, compared with all possible answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.messages import BeamParams, StopParams
from llmd.api.results import Hypothesis
from llmd.api.step import StepResult
from llmd.sampling.beam_search import NO_PROPOSALS, BeamSearch, Proposals, read_proposals

Early = bool | Literal["never"]
Model = Callable[[tuple[int, ...]], list[float]]
"""Log-probabilities of the next token."""


def random_model(seed: int, vocab: int) -> Model:
    def model(tokens: tuple[int, ...]) -> list[float]:
        logits = np.random.default_rng([seed, *tokens]).normal(size=vocab) * 2
        scores: list[float] = (logits - np.log(np.exp(logits).sum())).tolist()
        return scores

    return model


def propose(scores: list[float]) -> Proposals:
    ids = sorted(range(len(scores)), key=lambda token: -scores[token])
    return Proposals(ids, [scores[token] for token in ids])


def search(model: Model, params: BeamParams, stop: StopParams) -> tuple[Hypothesis, ...]:
    beams = BeamSearch(params, stop)
    while beams.live:
        beams.advance([propose(model(beam.tokens)) for beam in beams.live])
    return beams.best


def every_answer(model: Model, vocab: int, params: BeamParams, stop: StopParams) -> list[Hypothesis]:
    """Return all answers that end, best first."""
    answers = []
    for length in range(1, stop.max_tokens + 1):
        for tokens in itertools.product(range(vocab), repeat=length):
            ends = [n for n, token in enumerate(tokens, 1) if token in stop.stop_ids and n > stop.min_tokens]
            if ends == [length] or (not ends and length == stop.max_tokens):
                total = sum(model(tokens[:n])[tokens[n]] for n in range(length))
                finish = "stop" if ends else "length"
                answers.append(Hypothesis(tokens, finish, total / length**params.length_penalty))
    return sorted(answers, key=lambda answer: -answer.score)


PENALTIES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])


@given(
    seed=st.integers(0, 99),
    penalty=PENALTIES,
    early=st.sampled_from([False, True, "never"]),
    stop_ids=st.sampled_from([(), (0,), (1, 2)]),
    min_tokens=st.integers(0, 3),
)
def test_with_a_beam_for_everything_it_finds_every_answer(
    seed: int, penalty: float, *, early: Early, stop_ids: tuple[int, ...], min_tokens: int
) -> None:
    model, stop = random_model(seed, 3), StopParams(4, stop_ids, min_tokens)
    params = BeamParams(3**4 + 1, 3**4, penalty, early)
    found, expected = search(model, params, stop), every_answer(model, 3, params, stop)
    assert [(one.tokens, one.finish) for one in found] == [(one.tokens, one.finish) for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected])


@given(seed=st.integers(0, 999), width=st.integers(1, 5), penalty=PENALTIES)
def test_scores_are_those_of_the_answers(seed: int, width: int, penalty: float) -> None:
    model, stop = random_model(seed, 4), StopParams(6, (0,))
    found = search(model, BeamParams(width, width, penalty), stop)
    assert len(set(found)) == len(found) <= width
    for answer in found:
        total = sum(model(answer.tokens[:n])[token] for n, token in enumerate(answer.tokens))
        assert answer.score == pytest.approx(total / len(answer.tokens) ** penalty)
        assert answer.finish == ("stop" if answer.tokens[-1] == 0 else "length")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@given(seed=st.integers(0, 999), width=st.integers(1, 4), penalty=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_never_stopping_early_loses_nothing_that_running_on_would_find(
    seed: int, width: int, penalty: float
) -> None:
    """Log-probabilities only fall, so that the best possible score of a beam bounds all its answers."""
    model, stop = random_model(seed, 4), StopParams(6, (0,))

    class Endless(BeamSearch):
        def _has_ended(self, going: list, length: int) -> bool:  # type: ignore[type-arg, override]
            return not going

    params = BeamParams(width, width, penalty, "never")
    endless = Endless(params, stop)
    while endless.live:
        endless.advance([propose(model(beam.tokens)) for beam in endless.live])
    assert search(model, params, stop) == endless.best


def test_one_beam_is_greedy() -> None:
    model, stop = random_model(5, 4), StopParams(5)
    tokens: tuple[int, ...] = ()
    for _ in range(5):
        scores = model(tokens)
        tokens += (scores.index(max(scores)),)
    assert search(model, BeamParams(1), stop)[0].tokens == tokens


def chances(*pairs: tuple[int, float]) -> Proposals:
    return Proposals([token for token, _ in pairs], [math.log(chance) for _, chance in pairs])


STEPS = (
    [chances((1, 0.6), (0, 0.3), (2, 0.1))],
    [chances((1, 0.7), (0, 0.2), (2, 0.1)), chances((1, 0.5), (2, 0.3))],
    [chances((0, 0.8), (1, 0.05), (2, 0.02)), chances((1, 0.1))],
)
"""0 ends. After two steps the answers are 0 and 1 0, and beam 1 1 is better than both. After three steps 1 1
0 has replaced the first answer, and 1 1 1 is worse than the other, unless it could continue with certainty
for long.
"""


@pytest.mark.parametrize(("early", "steps"), [(True, 2), (False, 3), ("never", 4)])
def test_there_are_three_ways_to_end_early(*, early: Early, steps: int) -> None:
    search = BeamSearch(BeamParams(2, 2, 1.0, early), StopParams(9, (0,)))
    taken = 0
    for proposals in STEPS:
        if search.live:
            search.advance(proposals)
            taken += 1
    assert taken + bool(search.live) == steps
    assert [one.tokens for one in search.best] == ([(1, 0), (0,)] if early is True else [(1, 1, 0), (1, 0)])


def test_what_ends_counts_among_the_best_alone_and_lets_others_go_on() -> None:
    search = BeamSearch(BeamParams(2, 2), StopParams(9, (0, 5)))
    search.advance([chances((1, 0.4), (0, 0.3), (5, 0.2), (2, 0.1))])
    assert [beam.tokens for beam in search.live] == [(1,), (2,)]
    assert [one.tokens for one in search.best] == [(0,)]


def test_equal_ones_keep_the_order_of_their_beams_and_proposals() -> None:
    search = BeamSearch(BeamParams(3, 3), StopParams(2))
    search.advance([chances((7, 0.25), (3, 0.25), (9, 0.25))])
    assert [beam.tokens for beam in search.live] == [(7,), (3,), (9,)]
    search.advance([chances((4, 0.5), (2, 0.5))] * 3)
    assert [one.tokens for one in search.best] == [(7, 4), (7, 2), (3, 4)]


def test_a_beam_without_proposals_is_gone() -> None:
    search = BeamSearch(BeamParams(2, 2), StopParams(2))
    search.advance([chances((1, 0.6), (2, 0.4))])
    search.advance([NO_PROPOSALS, chances((1, 1.0))])
    assert [one.tokens for one in search.best] == [(2, 1)]
    lost = BeamSearch(BeamParams(2), StopParams(2))
    lost.advance([NO_PROPOSALS])
    assert (list(lost.live), lost.best) == ([], ())


def test_proposals_are_edited_and_logprobs_are_not() -> None:
    edited = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, -np.inf]], np.float32)
    raw = np.array([[0.0, 0.0, 0.0], [-1.0, 1.0, 5.0]], np.float32)
    sums = np.array([0.0, 3.0], np.float32)
    tops = np.array([[0, 0], [6, 5]], np.int32), np.array([[0.0, 0.0], [5.0, 1.0]], np.float32)
    ids = np.array([[0, 1, 2], [4, 5, 6]], np.int32)
    none = np.zeros(2, np.float32)
    result = StepResult(ids, edited, raw, sums + 4, sums, none, none, none.astype(np.int32), none, *tops)
    proposals = read_proposals(result, 1, 3, 1)
    assert (proposals.ids, proposals.scores) == ([4, 5], [-1.0, -2.0])
    assert [(one.chosen, one.top_ids, one.top) for one in proposals.logprobs] == [
        (-8.0, (6,), (-2.0,)),
        (-6.0, (6,), (-2.0,)),
    ]
    assert read_proposals(result, 1, 1, None) == Proposals([4], [-1.0])
