"""Beam searches in a core: answers do not depend on other requests, and all resources are freed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError
from llmd.api.errors import RequestError
from llmd.api.messages import BeamParams, Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import Failed, Hypothesis, Output, Started
from llmd.api.samplers import Dry, SamplingParams
from llmd.engine.core import EngineCore
from llmd.sampling.beam_search import BeamSearch, Proposals
from llmd.sampling.edits import LogitEdits
from llmd.testing.plans import TinyModel
from tests.serving.cores import prompt, submit

MakeCore = Callable[..., EngineCore]
Answers = dict[int, tuple[Hypothesis, ...]]

VOCAB = TinyModel().vocab
END = 128
VOCABULARY = Vocabulary(tuple(bytes([value]) for value in range(128)), (), (END,))
WIDTH = 3


def search(
    request_id: int, length: int = 40, *, max_tokens: int = 12, stop_ids: tuple[int, ...] = (), **fields: Any
) -> Submit:
    beams = BeamParams(WIDTH, WIDTH, **fields.pop("beams", {}))
    grammar = fields.pop("grammar", None)
    sampling = SamplingParams(seed=0, **fields)
    stop = StopParams(max_tokens, stop_ids)
    return Submit(request_id, prompt(request_id, length), sampling, stop, grammar=grammar, beams=beams)


def run(core: EngineCore, *requests: Submit) -> Answers:
    for request in requests:
        core.submit(request)
    answers: Answers = {}
    while core.busy:
        output = core.step()
        answers |= {one.request_id: one.hypotheses for one in output.beams}
        assert not output.failed
    core._pager.check_integrity()
    assert core.report().kv_blocks_used == 0
    assert (core._grammars._bound, core._sampler._requests, core._beams._owners) == ({}, {}, {})
    return answers


SEARCHES = (
    search(1, 5),
    search(2, 300, beams={"length_penalty": 0.0}),
    search(3, 40, stop_ids=(3, 5, 114), beams={"early_stopping": "never"}),
    search(4, 1, max_tokens=40, logprobs=2),
    search(5, 31, frequency_penalty=0.7, repetition_penalty=1.2, logit_bias=((7, 2.0),)),
)


def test_answers_do_not_depend_on_what_else_runs(make_core: MakeCore) -> None:
    others = [submit(n, 30, max_tokens=60, temperature=float(n % 2)) for n in range(10, 14)]
    together = run(make_core(slots=8), *SEARCHES, *others)
    for request in SEARCHES:
        assert run(make_core(slots=WIDTH), request) == {request.request_id: together[request.request_id]}


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.3, "stop_ids": (3, 114)},
        {"frequency_penalty": 0.7, "presence_penalty": 0.2, "repetition_penalty": 1.3},
        {"dry": Dry(1.5, 1.75, 2, 99), "bad_words": ((5, 5), (92,))},
        {"allowed_ids": (1, 5, 9, 96, 114), "logit_bias": ((5, -3.0),)},
        {"beams": {"length_penalty": 2.0}, "stop_ids": (3, 5, 114)},
    ],
    ids=["plain", "penalties", "runs", "biases", "length"],
)
def test_a_search_is_that_of_each_beam_computed_anew(make_core: MakeCore, fields: dict[str, Any]) -> None:
    core, request = make_core(), search(1, 20, max_tokens=8, **fields)
    (found,) = run(core, request).values()
    assert request.beams is not None
    beams = BeamSearch(request.beams, request.stop)
    while beams.live:
        beams.advance(
            [computed_again(core, request, beam.tokens, beams.num_proposals) for beam in beams.live]
        )
    assert [one.tokens for one in found] == [one.tokens for one in beams.best]
    assert [one.score for one in found] == pytest.approx([one.score for one in beams.best], abs=1e-5)


def computed_again(core: EngineCore, request: Submit, output: tuple[int, ...], count: int) -> Proposals:
    """Compute what follows an output, from all of its logits."""
    logits = core.forward(np.array([*request.prompt, *output]))[-1].astype(np.float64)
    edits = LogitEdits(request.sampling, request.prompt, output)
    for token, factor, bias in zip(*(part.tolist() for part in edits.row()), strict=True):
        logits[token] = (logits[token] / factor if logits[token] > 0 else logits[token] * factor) + bias
    allowed = list(request.sampling.allowed_ids) or range(VOCAB)
    logits = np.where(np.isin(np.arange(VOCAB), allowed), logits, -np.inf)
    scores = logits - np.log(np.exp(logits).sum())
    ids = [i for i in np.argsort(-scores, kind="stable")[:count].tolist() if np.isfinite(scores[i])]
    return Proposals(ids, scores[ids].tolist())


@pytest.mark.parametrize("cuts", [(), (3,)], ids=["one stage", "two stages"])
def test_answers_do_not_depend_on_preemption(make_core: MakeCore, cuts: tuple[int, ...]) -> None:
    """The pool holds little more than one search; a preempted search has diverged by then."""
    requests = [search(n, 40, max_tokens=40, frequency_penalty=0.1 * n) for n in range(1, 4)]
    requests += [submit(n, 60, max_tokens=40) for n in range(4, 6)]
    small, large = make_core(slots=12, budget_bytes=300_000, cuts=cuts), make_core(slots=12, cuts=cuts)
    assert run(small, *requests) == run(large, *requests)
    assert small.report().preemptions >= 3
    assert large.report().preemptions == 0


def test_answers_do_not_depend_on_the_prefix_cache(make_core: MakeCore) -> None:
    fresh, used = make_core(), make_core()
    request = search(7, 300)
    run(used, msgspec.structs.replace(request, request_id=1, prompt=request.prompt[:200]))
    assert run(used, request) == run(fresh, request)
    assert used.report().cached_tokens >= 192


def test_a_prompt_is_computed_once(make_core: MakeCore) -> None:
    core = make_core()
    run(core, search(1, 100))
    assert core.report().prompt_tokens == 100


def test_others_go_on_at_full_pace(make_core: MakeCore) -> None:
    """One token per step, even if a step is planned before the beams of the previous step are chosen."""
    core = make_core(slots=8)
    for request in (submit(1, 5, max_tokens=30), search(2, 5, max_tokens=60)):
        core.submit(request)
    tokens = [len(core.step().tokens) for _ in range(30)]
    assert tokens == [1] * 30


def test_it_has_started_once_its_prefill_has(make_core: MakeCore) -> None:
    core = make_core()
    core.submit(search(8, 20))
    assert [msgspec.structs.replace(one, running_s=0.0) for one in core.step().started] == [Started(8, 0)]


def test_logprobs_are_those_of_the_unmodified_distribution(make_core: MakeCore) -> None:
    core = make_core()
    request = search(1, 20, max_tokens=6, logprobs=4, logit_bias=((5, -2.0),), stop_ids=(3,))
    for answer in run(core, request)[1]:
        assert len(answer.logprobs) == len(answer.tokens)
        logits = core.forward(np.array([*request.prompt, *answer.tokens])).astype(np.float64)
        expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        for row, (token, told) in enumerate(zip(answer.tokens, answer.logprobs, strict=True), start=19):
            assert told.chosen == pytest.approx(expected[row, token], abs=1e-5)
            assert list(told.top_ids) == np.argsort(-logits[row], kind="stable")[:4].tolist()


@pytest.mark.parametrize("before", [0, 1, 2, 7])
def test_cancelling_leaves_nothing(make_core: MakeCore, before: int) -> None:
    """Cancel before the first step, in the prefill, after it, in the search, and while waiting for slots."""
    core = make_core(slots=4)
    core.set_vocabulary(VOCABULARY)
    core.submit(search(1, 300))
    core.submit(search(2, 5, grammar=Grammar("regex", "[a-z]{90}")))
    for _ in range(before):
        core.step()
    for request_id in (1, 2):
        core.cancel(request_id)
    while core.busy:  # a step that is in flight
        output = core.step()
        assert output == Output((), step_s=output.step_s)
    assert (core.report().running, core.report().waiting, core.report().kv_blocks_used) == (0, 0, 0)
    assert run(core, search(1, 5)) == run(make_core(slots=4), search(1, 5))


def test_a_failed_step_is_repeated(make_core: MakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    request = search(1, 20)
    expected = run(make_core(), request)
    core = make_core()
    core.submit(request)
    for _ in range(4):
        core.step()
    with monkeypatch.context() as patch:

        def fail(*_arguments: object) -> None:
            raise DeviceError("lost")

        patch.setattr(core._pipeline._stages[-1], "submit", fail)
        with pytest.raises(DeviceError, match="lost"):
            run(core)
    assert run(core) == expected


CHOICES = Grammar("choice", '["yes", "yet", "no, never", "perhaps"]')


def text(answer: Hypothesis) -> str:
    return bytes(token for token in answer.tokens if token != END).decode()


def test_every_answer_matches_the_grammar(make_core: MakeCore) -> None:
    core = make_core(slots=7)
    core.set_vocabulary(VOCABULARY)
    pattern = "(ab|cd){3,9}[0-9]"
    found = run(
        core, *(search(n, 9, max_tokens=30, grammar=Grammar("regex", pattern)) for n in (1, 2)), search(3)
    )
    for answer in (*found[1], *found[2]):
        assert answer.finish == "stop"
        assert re.fullmatch(pattern, text(answer))
    assert len({one.tokens for one in found[1]}) == WIDTH


def test_grammars_follow_their_beams_through_preemptions(make_core: MakeCore) -> None:
    requests = [
        search(n, 40, max_tokens=40, grammar=Grammar("regex", "(ab|cd){15}[0-9]{9}")) for n in (1, 2, 3)
    ]
    small, large = make_core(slots=12, budget_bytes=300_000), make_core(slots=12)
    for core in (small, large):
        core.set_vocabulary(VOCABULARY)
    assert run(small, *requests) == run(large, *requests)
    assert small.report().preemptions


def test_there_are_no_more_answers_than_the_grammar_has(make_core: MakeCore) -> None:
    core = make_core()
    core.set_vocabulary(VOCABULARY)
    found = run(core, search(1, 9, grammar=Grammar("choice", '["yes", "no"]')))[1]
    assert sorted(map(text, found)) == ["no", "yes"]


def test_a_beam_that_cannot_go_on_leaves_the_others(make_core: MakeCore) -> None:
    core = make_core()
    core.set_vocabulary(VOCABULARY)
    found = run(core, search(1, 9, grammar=CHOICES, logit_bias=((ord("t"), -100.0), (ord(","), -100.0))))[1]
    assert sorted(map(text, found)) == ["perhaps", "yes"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"grammar": CHOICES, "logit_bias": tuple((ord(c), -100.0) for c in "erov")}, "forbids every token"),
        ({"logit_bias": tuple((i, -100.0) for i in range(VOCAB))}, "forbids every token"),
        ({"grammar": Grammar("regex", "(")}, "cannot be compiled"),
    ],
    ids=["dead ends", "nothing allowed", "bad grammar"],
)
def test_a_search_without_answers_fails_and_says_why(
    make_core: MakeCore, fields: dict[str, Any], reason: str
) -> None:
    core = make_core()
    core.set_vocabulary(VOCABULARY)
    core.submit(search(1, 9, **fields))
    failed: list[Failed] = []
    while core.busy:
        failed += core.step().failed
    (failure,) = failed
    assert failure.request_id == 1
    assert reason in failure.message
    assert core.report().kv_blocks_used == 0


def test_a_refused_grammar_leaves_nothing(make_core: MakeCore) -> None:
    core = make_core()
    with pytest.raises(RequestError, match="knows no vocabulary"):
        core.submit(search(1, 9, grammar=CHOICES))
    assert not core.busy
    assert not core._beams.close(1)
    assert run(core, search(1, 5))
