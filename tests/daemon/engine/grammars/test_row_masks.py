"""Masks of allowed tokens draw the same as biases that forbid all other tokens, with and without grammars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from llmd.api.messages import BeamParams, Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import Failed, Output
from llmd.api.samplers import LLAMA_CPP_ORDER, Dry, DynamicTemperature, Mirostat, SamplingParams, Xtc
from llmd.engine.core import EngineCore
from llmd.engine.grammars.grammars import Grammars
from llmd.engine.grammars.row_masks import RowMasks, masked_rows
from llmd.sampling.sampler import Sampler
from llmd.scheduler.sequence import Sequence
from llmd.testing.plans import TinyModel
from tests.serving.cores import finish, prompt, run

MakeCore = Callable[..., EngineCore]

VOCAB = TinyModel().vocab
END = 128
VOCABULARY = Vocabulary(tuple(bytes([value]) for value in range(128)), (), (END,))
FEW, MANY = (3, 50, 99), tuple(range(0, VOCAB, 2))
SAMPLED: tuple[Mapping[str, Any], ...] = (
    {"allowed_ids": FEW, "temperature": 0.0, "frequency_penalty": 0.4},
    {"allowed_ids": FEW, "temperature": 5.0, "logprobs": 3},
    {"allowed_ids": MANY, "top_p": 0.9, "repetition_penalty": 1.3, "logit_bias": ((2, 2.0), (3, 4.0))},
    {"allowed_ids": MANY, "typical_p": 0.8, "order": LLAMA_CPP_ORDER, "bad_words": ((4, 8), (6,))},
    {"allowed_ids": MANY, "mirostat": Mirostat(2, tau=3.0), "dry": Dry(0.8, 1.75, 2, 99)},
    {"allowed_ids": MANY, "temperature": 9.0, "xtc": Xtc(0.5, 0.02), "logprobs": 0},
    {"allowed_ids": MANY, "dynamic_temperature": DynamicTemperature(0.5), "top_n_sigma": 2.0},
    {"allowed_ids": (7, 7), "temperature": 1.0},
)


def restricted(number: int, fields: Mapping[str, Any], **submit: Any) -> Submit:
    sampling = SamplingParams(seed=number, **fields)
    return Submit(number, prompt(number, 30 + 40 * (number % 2)), sampling, StopParams(30), **submit)


def forbidding(request: Submit) -> Submit:
    """Return the same request with biases that forbid the other tokens."""
    sampling = request.sampling
    own = dict(sampling.logit_bias)
    biases = {
        token: own.get(token, 0.0) if token in sampling.allowed_ids else -100.0 for token in range(VOCAB)
    }
    changed = msgspec.structs.replace(sampling, allowed_ids=(), logit_bias=tuple(biases.items()))
    return msgspec.structs.replace(request, sampling=changed)


REQUESTS = [restricted(number, fields) for number, fields in enumerate(SAMPLED)]
REQUESTS.append(restricted(8, SAMPLED[1], prompt_logprobs=2))


@pytest.fixture
def make(make_core: MakeCore) -> MakeCore:
    """Return a function that builds cores with a vocabulary."""

    def make(**options: Any) -> EngineCore:
        core = make_core(**{"slots": 9} | options)
        core.set_vocabulary(VOCABULARY)
        return core

    return make


def test_tokens_and_logprobs_are_those_of_a_request_that_forbids_the_others(make: MakeCore) -> None:
    found = run(make(), *REQUESTS)
    assert found == run(make(), *map(forbidding, REQUESTS))
    for request in REQUESTS:
        tokens = {output.token for output in found[request.request_id]}
        assert tokens <= set(request.sampling.allowed_ids)


def test_tokens_are_the_same_alone_in_two_stages_and_after_preemptions(make: MakeCore) -> None:
    together = run(make(), *REQUESTS)
    for request in REQUESTS:
        assert run(make(), request) == {request.request_id: together[request.request_id]}
    tight = make(budget_bytes=120_000, cuts=(3,))
    tokens = {number: [one.token for one in outputs] for number, outputs in run(tight, *REQUESTS).items()}
    assert tokens == {number: [one.token for one in outputs] for number, outputs in together.items()}
    assert tight.report().preemptions >= 2


def test_a_resubmitted_request_goes_on_with_the_same_tokens(make: MakeCore) -> None:
    whole = run(make(), *REQUESTS)
    for request in REQUESTS:
        tokens = whole[request.request_id]
        known = {"output": tuple(one.token for one in tokens[:12]), "state": tokens[11].state}
        again = msgspec.structs.replace(request, **known)
        assert run(make(), again)[request.request_id] == tokens[12:]


@pytest.mark.parametrize("grammar", [None, Grammar("regex", "[a-z]{4,9}!")], ids=["free", "grammar"])
def test_beams_are_those_of_a_search_that_forbids_the_others(make: MakeCore, grammar: Grammar | None) -> None:
    fields = {"allowed_ids": (*b"aceghi!", 3, END), "frequency_penalty": 0.3, "logprobs": 2}
    request = restricted(1, fields, grammar=grammar, beams=BeamParams(3, 3))
    found = search(make(), request)
    assert found == search(make(), forbidding(request))
    assert {token for tokens in found for token in tokens} <= set(request.sampling.allowed_ids)
    assert len(found) == 3


def search(core: EngineCore, request: Submit) -> list[tuple[int, ...]]:
    """Return the answers of a request that runs alone."""
    (ended,) = [ended for output in outputs(core, request) for ended in output.beams]
    return [one.tokens for one in ended.hypotheses]


def outputs(core: EngineCore, *requests: Submit) -> list[Output]:
    for request in requests:
        core.submit(request)
    found = []
    while core.busy:
        found.append(core.step())
    return found


@pytest.mark.parametrize("temperature", [0.0, 1.0, 4.0])
def test_a_token_must_be_allowed_by_request_and_grammar(make: MakeCore, temperature: float) -> None:
    fields = {"allowed_ids": (*b"aeiou", END), "temperature": temperature}
    grammar = Grammar("regex", "[a-m]{20}")
    requests = [restricted(number, fields, grammar=grammar) for number in range(6)]
    others = [restricted(number, {}, grammar=grammar) for number in (6, 7)]
    found = run(make(), *requests, *others, REQUESTS[8])
    assert found == run(make(), *map(forbidding, requests), *others, forbidding(REQUESTS[8]))
    for request in requests:
        tokens = [one.token for one in found[request.request_id]]
        assert set(tokens[:-1]) <= set(b"aei")
        assert tokens[-1] == END


def test_a_request_that_allows_nothing_of_its_grammar_fails_and_gets_no_token(make: MakeCore) -> None:
    core = make()
    asked = restricted(1, {"allowed_ids": tuple(b"xyz")}, grammar=Grammar("regex", "[a-m]{20}"))
    found = outputs(core, asked, REQUESTS[2])
    failed: list[Failed] = [one for output in found for one in output.failed]
    assert [(one.request_id, one.error) for one in failed] == [(1, "GrammarError")]
    assert {one.request_id for output in found for one in output.tokens} == {2}
    assert finish(core) == {}


def test_rows_have_the_masks_that_bind_them() -> None:
    grammars, sampler = Grammars(VOCAB, 4), Sampler(VOCAB)
    grammars.set_vocabulary(VOCABULARY)
    fields: dict[str, Any] = {"allowed_ids": (ord("a"), 5)}
    grammar = Grammar("regex", "[ab]c")
    requests = (
        restricted(1, {}),
        restricted(2, fields),
        restricted(3, {}, grammar=grammar),
        restricted(4, fields, grammar=grammar),
    )
    sequences = []
    for request in requests:
        sampler.add(request.request_id, request.sampling, request.prompt)
        if request.grammar is None:
            sequences.append(Sequence.of(request))
        else:
            grammars.open(msgspec.structs.replace(request, stop=StopParams(9, (END,))), arrival=0)
            while not (compiled := [*grammars.compiled()]):
                grammars.wait(20.0)
            sequences += compiled
    assert masked_rows(sequences, sampler, grammars) == [False, True, True, True]
    masks = RowMasks(sequences, [False, True, True, True], sampler, grammars).filled()
    a, b = 1 << ord("a") % 32, 1 << ord("b") % 32
    assert masks.tolist() == [[1 << 5, 0, 0, a, 0], [0, 0, 0, a | b, 0], [0, 0, 0, a, 0]]
    assert masked_rows(sequences[:1], sampler, grammars) == []
    sampler.remove(2)
    assert masked_rows(sequences[1:2], sampler, grammars) == []
    grammars.shut_down()
