"""Penalties and biases against their formulas, written out one logit at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.messages import SamplingParams
from llmd.sampling.edits import LogitEdits

VOCAB = 12
TOKENS = st.lists(st.integers(0, VOCAB - 1), max_size=30)
SOME = SamplingParams(
    seed=0,
    repetition_penalty=1.5,
    frequency_penalty=0.25,
    presence_penalty=-0.5,
    logit_bias=((3, -100.0), (7, 2.0)),
)


def edited(edits: LogitEdits, logits: list[float]) -> list[float]:
    """What a device does with the edits (`llmd.api.step.Selection`)."""
    result = list(logits)
    for token, factor, bias in zip(*(part.tolist() for part in edits.row()), strict=True):
        value = logits[token]
        result[token] = (value / factor if value > 0 else value * factor) + bias
    return result


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
    edits = LogitEdits(SOME, VOCAB, prompt, output)
    for token in appended:
        edits.append(token)
    expected = by_formula(SOME, prompt, output + appended, logits)
    assert edited(edits, logits) == pytest.approx(expected, abs=1e-4)


def test_only_what_changes_is_an_edit() -> None:
    assert LogitEdits(SOME, VOCAB, [1], [5, 5]).row()[0].tolist() == [1, 3, 5, 7]
    frequency = SamplingParams(seed=0, frequency_penalty=0.5)
    assert LogitEdits(frequency, VOCAB, [1], [5, 5]).row()[0].tolist() == [5]


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        (SamplingParams(seed=0), False),
        (SamplingParams(seed=0, repetition_penalty=1.1), True),
        (SamplingParams(seed=0, frequency_penalty=0.1), True),
        (SamplingParams(seed=0, presence_penalty=-0.1), True),
        (SamplingParams(seed=0, logit_bias=((1, 1.0),)), True),
    ],
)
def test_a_request_without_edits_costs_nothing(params: SamplingParams, *, wanted: bool) -> None:
    assert LogitEdits.wanted(params) is wanted
