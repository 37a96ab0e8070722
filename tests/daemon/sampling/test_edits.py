"""Penalties and biases against their formulas, written out for one logit at a time."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.samplers import Dry, SamplingParams
from llmd.sampling.edits import LogitEdits

VOCAB = 12
TOKENS = st.lists(st.integers(0, VOCAB - 1), max_size=30)
SOME = SamplingParams(
    seed=0,
    repetition_penalty=1.5,
    frequency_penalty=0.25,
    presence_penalty=-0.5,
    logit_bias=((3, -99.0), (7, 2.0)),
)


def edited(edits: LogitEdits, logits: list[float]) -> list[float]:
    """Apply the edits as a device does (`llmd.api.step.Selection`)."""
    result = list(logits)
    for token, factor, bias in zip(*(part.tolist() for part in edits.row()), strict=True):
        value = logits[token]
        result[token] = (value / factor if value > 0 else value * factor) + bias
    return result


def forbidden(edits: LogitEdits) -> set[int]:
    return {token for token, logit in enumerate(edited(edits, [0.0] * VOCAB)) if logit == -math.inf}


def by_formula(
    params: SamplingParams, prompt: list[int], output: list[int], logits: list[float]
) -> list[float]:
    def one(token: int, logit: float) -> float:
        factor = params.repetition_penalty if token in (*prompt, *output) else 1.0
        summand = dict(params.logit_bias).get(token, 0.0) - params.frequency_penalty * output.count(token)
        summand -= params.presence_penalty if token in output else 0.0
        return (logit / factor if logit > 0 else logit * factor) + summand

    return [one(token, logit) for token, logit in enumerate(logits)]


@given(prompt=TOKENS, output=TOKENS, appended=TOKENS)
def test_edits_are_the_formulas(prompt: list[int], output: list[int], appended: list[int]) -> None:
    logits = np.linspace(-3.0, 4.0, VOCAB).tolist()
    edits = LogitEdits(SOME, prompt, output)
    for token in appended:
        edits.append(token)
    expected = by_formula(SOME, prompt, output + appended, logits)
    assert edited(edits, logits) == pytest.approx(expected, abs=1e-4)


def test_only_what_changes_is_an_edit() -> None:
    assert sorted(LogitEdits(SOME, [1], [5, 5]).row()[0].tolist()) == [1, 3, 5, 7]
    frequency = SamplingParams(seed=0, frequency_penalty=0.5)
    assert LogitEdits(frequency, [1], [5, 5]).row()[0].tolist() == [5]


def test_the_lowest_bias_means_never() -> None:
    params = SamplingParams(seed=0, logit_bias=((3, -100.0), (4, -99.9)), presence_penalty=-2.0)
    logits = edited(LogitEdits(params, [], [3]), [50.0] * VOCAB)
    assert logits[3] == -math.inf
    assert logits[4] == pytest.approx(-49.9)


def test_bad_words_forbid_the_token_that_would_complete_one_in_the_output() -> None:
    params = SamplingParams(seed=0, bad_words=((4,), (1, 2), (2, 1, 3)))
    edits = LogitEdits(params, [1], [])
    assert forbidden(edits) == {4}
    for token, expected in ((1, {4, 2}), (2, {4}), (1, {4, 2, 3}), (1, {4, 2}), (9, {4})):
        edits.append(token)
        assert forbidden(edits) == expected


def test_dry_penalties_add_to_other_edits() -> None:
    dry = Dry(multiplier=2.0, base=1.5, allowed_len=1, last_n=100)
    params = SamplingParams(seed=0, dry=dry, logit_bias=((2, 0.5),))
    logits = edited(LogitEdits(params, [1, 2], [1]), [0.0] * VOCAB)
    assert logits[2] == pytest.approx(0.5 - 2.0)


@given(prompt=TOKENS, output=TOKENS, appended=TOKENS)
def test_a_replay_gives_the_same_bits(prompt: list[int], output: list[int], appended: list[int]) -> None:
    dry = Dry(0.8, 1.75, 1, 20, break_ids=(3,), break_runs=((4, 5),))
    for window in (None, 4):
        params = msgspec.structs.replace(SOME, penalty_last_n=window, dry=dry, bad_words=((1, 2),))
        edits = LogitEdits(params, prompt, output)
        for token in appended:
            edits.append(token)
        logits = np.linspace(-3.0, 4.0, VOCAB).tolist()
        replayed = LogitEdits(params, prompt, output + appended)
        assert edited(edits, logits) == edited(replayed, logits)


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        (SamplingParams(seed=0), False),
        (SamplingParams(seed=0, repetition_penalty=1.1), True),
        (SamplingParams(seed=0, frequency_penalty=0.1), True),
        (SamplingParams(seed=0, presence_penalty=-0.1), True),
        (SamplingParams(seed=0, presence_penalty=-0.1, penalty_last_n=0), False),
        (SamplingParams(seed=0, logit_bias=((1, 1.0),)), True),
        (SamplingParams(seed=0, bad_words=((1,),)), True),
        (SamplingParams(seed=0, allowed_ids=(1,)), False),
        (SamplingParams(seed=0, dry=Dry(1.0, 1.75, 2, 64)), True),
    ],
)
def test_a_request_without_edits_costs_nothing(params: SamplingParams, *, wanted: bool) -> None:
    assert LogitEdits.wanted(params) is wanted


EVERYTHING = msgspec.structs.replace(
    SOME,
    dry=Dry(1.0, 1.75, 2, 99),
    bad_words=((1, 2), (4,)),
    penalty_last_n=6,
)


@pytest.mark.parametrize("params", [SOME, EVERYTHING], ids=["some", "everything"])
@given(prompt=TOKENS, before=TOKENS, one=TOKENS, other=TOKENS)
def test_forks_go_their_own_ways(
    params: SamplingParams, prompt: list[int], before: list[int], one: list[int], other: list[int]
) -> None:
    edits = LogitEdits(params, prompt, before)
    forked = edits.fork()
    for token in one:
        edits.append(token)
    for token in other:
        forked.append(token)
    logits = np.linspace(-3.0, 4.0, VOCAB).tolist()
    for edited_so, output in ((edits, one), (forked, other)):
        fresh = LogitEdits(params, prompt, before + output)
        assert edited(edited_so, logits) == pytest.approx(edited(fresh, logits), abs=1e-4)
