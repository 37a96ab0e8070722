"""Steps that are prepared before the tokens they need are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from llmd.api import StageLimits
from llmd.api.messages import Grammar, StopParams, Submit, Vocabulary
from llmd.api.samplers import SamplingParams
from llmd.engine.grammars.grammars import Grammars
from llmd.engine.steps.batch import build_step
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step import InFlightStep, PreparedStep
from llmd.models.lowering import lower
from llmd.sampling.sampler import Sampler
from llmd.scheduler.chunk import Chunk, StepPlan
from llmd.scheduler.sequence import Sequence
from llmd.testing.null_device import NullDevice
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource

TABLES = (np.zeros((1, 1), np.int32),)
COPIES = np.zeros((0, 3), np.int32)


@pytest.fixture
def pipeline() -> Pipeline:
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32")
    parts = NullDevice(lambda: 0.0).load(program, RandomSource(), lambda _done, _total: None)
    return Pipeline([parts.stage({0: 4}, StageLimits(8, 2, 2))])


def sequence(temperature: float = 0.0, **params: Any) -> Sequence:
    sampling = SamplingParams(seed=0, temperature=temperature, **params)
    return Sequence(1, [5, 6, 7], 3, sampling, StopParams(4))


def prepared(
    one: Sequence,
    start: int,
    count: int,
    before: InFlightStep | None = None,
    grammars: Grammars | None = None,
) -> PreparedStep:
    chunks = [Chunk(one, start, count, ends=True)]
    sampler = Sampler(131)
    sampler.add(1, one.sampling, one.tokens)
    step = build_step(chunks, TABLES, COPIES)
    return PreparedStep(StepPlan(chunks, []), step, COPIES, sampler, grammars or Grammars(131, 8), before)


def test_a_step_with_all_its_tokens_follows_at_once(pipeline: Pipeline) -> None:
    first = prepared(sequence(), 0, 3).launch(pipeline)
    second = prepared(sequence(), 0, 3, first)
    assert second.follows_device
    assert second.launch_behind(first, pipeline).draw().tokens == first.draw().tokens


def test_a_greedy_token_is_left_to_the_device(pipeline: Pipeline) -> None:
    one = sequence()
    first = prepared(one, 0, 3).launch(pipeline)
    second = prepared(one, 3, 1, first)
    assert second.follows_device
    second.launch_behind(first, pipeline)
    assert second._step.token_ids.tolist() == [-1]


def test_a_greedy_token_of_those_that_are_allowed_is_left_to_the_device(pipeline: Pipeline) -> None:
    one = sequence(allowed_ids=(5, 9))
    first = prepared(one, 0, 3).launch(pipeline)
    second = prepared(one, 3, 1, first)
    assert second.follows_device
    second.launch_behind(first, pipeline).draw()


@pytest.fixture
def grammars() -> Iterator[Grammars]:
    """Bind sequence 1 to a grammar that allows any text of letters."""
    known = Grammars(131, 8)
    known.set_vocabulary(Vocabulary(tuple(b"%c" % (97 + token % 26) for token in range(130)), (), (130,)))
    known.open(Submit(1, (5, 6, 7), SamplingParams(0), StopParams(4), grammar=Grammar("regex", "[a-z]*")), 0)
    while not [*known.compiled()]:
        known.wait(20.0)
    yield known
    known.shut_down()


def test_a_greedy_token_under_a_grammar_is_left_to_the_device_and_its_mask_follows(
    pipeline: Pipeline, grammars: Grammars
) -> None:
    one = sequence()
    first = prepared(one, 0, 3, grammars=grammars).launch(pipeline)
    second = prepared(one, 3, 1, first, grammars)
    assert second.follows_device
    behind = second.launch_behind(first, pipeline)
    assert second._step.token_ids.tolist() == [-1]
    with pytest.raises(ValueError, match="before apply_masks"):
        behind.draw()
    one.append(first.draw().tokens[0])
    behind.complete_behind()
    assert len(behind.draw().tokens) == 1


def test_a_sequence_that_has_ended_needs_no_mask_of_its_grammar(
    pipeline: Pipeline, grammars: Grammars
) -> None:
    one = sequence()
    first = prepared(one, 0, 3, grammars=grammars).launch(pipeline)
    behind = prepared(one, 3, 1, first, grammars).launch_behind(first, pipeline)
    grammars.close(1)
    behind.complete_behind()
    behind.draw()


def test_a_sampled_token_under_a_grammar_is_appended_before_the_next_step(
    pipeline: Pipeline, grammars: Grammars
) -> None:
    one = sequence(temperature=0.5)
    first = prepared(one, 0, 3, grammars=grammars).launch(pipeline)
    second = prepared(one, 3, 1, first, grammars)
    assert second.needs_appended
    assert not second.follows_device


def test_a_sampled_token_is_waited_for_and_takes_its_place(pipeline: Pipeline) -> None:
    one = sequence(temperature=0.5)
    second = prepared(one, 3, 1, prepared(one, 0, 3).launch(pipeline))
    assert not second.follows_device
    assert not second.needs_appended
    second.launch(pipeline, [42])
    assert second._step.token_ids.tolist() == [42]


def test_edits_are_taken_when_the_token_before_was_appended(pipeline: Pipeline) -> None:
    one = sequence(presence_penalty=1.0)
    first = prepared(one, 0, 3).launch(pipeline)
    second = prepared(one, 3, 1, first)
    assert second.needs_appended
    assert not second.follows_device


def test_an_empty_plan_is_told() -> None:
    assert PreparedStep(
        StepPlan([], []), build_step([], TABLES, COPIES), COPIES, Sampler(131), Grammars(131, 8), None
    ).is_empty
