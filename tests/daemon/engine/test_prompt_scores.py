"""Prompts get the log-probabilities of one whole forward pass, however their prefill is split."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import RequestError
from llmd.api.messages import StopParams, Submit
from llmd.api.results import Logprobs, TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.prompt_scores import PromptScores
from llmd.testing.plans import TinyModel

MakeCore = Callable[..., EngineCore]


def scoring(request_id: int, length: int, *, max_tokens: int = 3, wanted: int | None = 2) -> Submit:
    tokens = np.random.default_rng(request_id).integers(0, TinyModel().vocab, length).tolist()
    sampling = SamplingParams(seed=request_id, temperature=float(request_id % 2))
    return Submit(
        request_id, tuple(tokens), sampling, StopParams(max_tokens=max_tokens), prompt_logprobs=wanted
    )


def run(core: EngineCore, *requests: Submit) -> dict[int, list[TokenOutput]]:
    found: dict[int, list[TokenOutput]] = {request.request_id: [] for request in requests}
    for request in requests:
        core.submit(request)
    while core.busy:
        for token in core.step().tokens:
            found[token.request_id].append(token)
    return found


def assert_scores(core: EngineCore, request: Submit, scores: tuple[Logprobs, ...]) -> None:
    logits = core.forward(np.array(request.prompt, np.int32)).astype(np.float64)
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert len(scores) == len(request.prompt) - 1
    for row, (token, score) in enumerate(zip(request.prompt[1:], scores, strict=True)):
        assert score.chosen == pytest.approx(expected[row, token], abs=1e-5)
        best = np.argsort(-logits[row], kind="stable")[: request.prompt_logprobs]
        assert list(score.top_ids) == best.tolist()
        assert score.top == pytest.approx(expected[row, best].tolist(), abs=1e-5)


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_scores_are_those_of_a_forward_pass_beside_others(make_core: MakeCore, slots: int) -> None:
    core = make_core(slots=slots)
    requests = [
        scoring(1, 300),
        scoring(2, 2),
        scoring(3, 40, wanted=0),
        scoring(4, 1),
        scoring(5, 90, wanted=None),
    ]
    found = run(core, *requests)
    for request in requests[:4]:
        first, *later = found[request.request_id]
        assert_scores(core, request, first.prompt)
        assert not any(token.prompt for token in later)
    assert not any(token.prompt for token in found[5])
    plain = [msgspec.structs.replace(request, prompt_logprobs=None) for request in requests]
    for request_id, tokens in run(make_core(slots=slots), *plain).items():
        assert [token.token for token in tokens] == [token.token for token in found[request_id]]


def test_others_decode_while_a_prompt_is_scored(make_core: MakeCore) -> None:
    core = make_core(slots=2)
    core.submit(scoring(5, 4, max_tokens=30, wanted=None))
    core.step()
    core.submit(scoring(1, 300))
    steps = [core.step() for _ in range(10)]
    assert all(5 in {token.request_id for token in output.tokens} for output in steps[2:])


def test_scores_survive_a_preemption(make_core: MakeCore) -> None:
    core = make_core(slots=6, budget_bytes=120_000)
    requests = [scoring(n, 60, max_tokens=40) for n in range(1, 7)]
    found = run(core, *requests)
    assert core.report().preemptions > 0
    for request in requests:
        assert_scores(core, request, found[request.request_id][0].prompt)


def test_a_prompt_may_be_scored_alone_up_to_the_end_of_the_window(make_core: MakeCore) -> None:
    core = make_core(context_len=128)
    request = scoring(1, 128, max_tokens=0)
    (only,) = run(core, request)[1]
    assert only.finish == "length"
    assert_scores(core, request, only.prompt)
    with pytest.raises(RequestError, match="there is nothing to generate"):
        core.submit(msgspec.structs.replace(request, prompt_logprobs=None))


def test_scored_prompts_neither_take_nor_leave_cached_prefixes(make_core: MakeCore) -> None:
    core = make_core()
    run(core, scoring(1, 300))
    run(core, msgspec.structs.replace(scoring(1, 300, wanted=None), request_id=9))
    assert core.report().cached_tokens == 0
    run(core, msgspec.structs.replace(scoring(1, 300), request_id=10))
    assert core.report().cached_tokens == 0


def test_a_request_with_output_is_not_scored_again(make_core: MakeCore) -> None:
    request = scoring(1, 50, max_tokens=6)
    whole = run(make_core(), request)[1]
    again = msgspec.structs.replace(request, output=(whole[0].token, whole[1].token))
    assert run(make_core(), again)[1] == whole[2:]


def test_a_request_that_was_forgotten_has_no_scores() -> None:
    scores = PromptScores()
    scores.add(scoring(1, 5))
    scores.remove(1)
    scores.remove(1)
    assert scores.pop(1) == ()
