"""Sequences give the same tokens regardless of other running sequences, and free all their resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError
from llmd.api.messages import Submit
from llmd.api.results import Logprobs, TokenOutput
from llmd.api.samplers import LLAMA_CPP_ORDER, Dry, DynamicTemperature, Mirostat, SamplingParams, Xtc
from llmd.api.step import Ticket
from llmd.engine.core import EngineCore
from llmd.engine.steps.pipeline import StepTickets
from tests.serving.cores import choices, finish, ids, prompt, run, submit

MakeCore = Callable[..., EngineCore]


def step_until(core: EngineCore, tokens: list[int]) -> None:
    """Step for ever; ``tokens`` contains what was sampled before a failure."""
    while True:
        tokens += ids(list(core.step().tokens))


REQUESTS = (
    submit(1, 5),
    submit(2, 300, temperature=0.9),
    submit(3, 40, temperature=1.5),
    submit(4, 1),
    submit(5, 17),
)


def test_tokens_do_not_depend_on_what_else_runs(make_core: MakeCore) -> None:
    together = run(make_core(slots=3), *REQUESTS)
    for request in REQUESTS:
        assert ids(run(make_core(), request)[request.request_id]) == ids(together[request.request_id])


def test_tokens_do_not_depend_on_the_split(make_core: MakeCore) -> None:
    whole, split = run(make_core(), *REQUESTS), run(make_core(cuts=(3, 6)), *REQUESTS)
    assert {key: ids(tokens) for key, tokens in whole.items()} == {key: ids(t) for key, t in split.items()}


def test_a_resubmitted_request_goes_on_with_the_same_tokens(make_core: MakeCore) -> None:
    undisturbed = run(make_core(), *REQUESTS)
    for request in REQUESTS:
        tokens = ids(undisturbed[request.request_id])
        again = Submit(request.request_id, request.prompt, request.sampling, request.stop, tuple(tokens[:5]))
        assert ids(run(make_core(), again)[request.request_id]) == tokens[5:]


def test_logprobs_are_those_of_the_unmodified_distribution(make_core: MakeCore) -> None:
    core = make_core()
    outputs = run(core, submit(1, 20, max_tokens=4, temperature=2.0, logprobs=5))[1]
    logits = core.forward(np.array([*prompt(1, 20), *ids(outputs)], np.int32)).astype(np.float64)
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for row, output in enumerate(outputs, start=19):
        assert output.logprobs is not None
        assert output.logprobs.chosen == pytest.approx(expected[row, output.token], abs=1e-5)
        best = np.argsort(-logits[row], kind="stable")[:5]
        assert list(output.logprobs.top_ids) == best.tolist()
        assert output.logprobs.top == pytest.approx(expected[row, best].tolist(), abs=1e-5)


def test_logprobs_of_named_tokens_are_exact_however_unlikely_they_are(make_core: MakeCore) -> None:
    core = make_core()
    logits = core.forward(np.array(prompt(1, 20), np.int32))[-1].astype(np.float64)
    expected = logits - np.log(np.exp(logits).sum())
    worst, best = int(logits.argmin()), int(logits.argmax())
    for named in ((best,), (worst, best), (7, 7, 8)):
        (output,) = run(core, submit(1, 20, max_tokens=1, logprobs=0, logprob_ids=named))[1]
        assert output.logprobs is not None
        assert output.logprobs.top_ids == named
        assert output.logprobs.top == pytest.approx(expected[list(named)].tolist(), abs=1e-5)


def test_final_logprobs_are_those_that_tokens_were_drawn_from(make_core: MakeCore) -> None:
    core = make_core()
    drawing = submit(1, 20, max_tokens=4, temperature=2.0, logprobs=5)
    greedy = submit(2, 20, max_tokens=4, logprobs=5)
    final = [
        msgspec.structs.replace(
            one, sampling=msgspec.structs.replace(one.sampling, top_k=3, post_sampling=True)
        )
        for one in (drawing, greedy)
    ]
    outputs = run(core, *final)
    logits = core.forward(np.array([*prompt(1, 20), *ids(outputs[1])], np.int32)).astype(np.float64)
    for row, output in enumerate(outputs[1], start=19):
        best = np.argsort(-logits[row], kind="stable")[:3]
        weights = np.exp(logits[row, best] / 2.0)
        assert output.logprobs is not None
        assert list(output.logprobs.top_ids) == best.tolist()
        assert np.exp(output.logprobs.top) == pytest.approx(weights / weights.sum(), rel=1e-3)
        assert output.logprobs.chosen == output.logprobs.top[best.tolist().index(output.token)]
    for output in outputs[2]:
        assert output.logprobs == Logprobs(0.0, (output.token,), (0.0,))


def test_each_sequence_ends_for_its_own_reason(make_core: MakeCore) -> None:
    free = ids(run(make_core(), submit(1, 20))[1])
    stopped = run(make_core(), submit(1, 20, stop_ids=(free[3],)), submit(2, 9, max_tokens=3))
    assert ids(stopped[1]) == free[: free.index(free[3]) + 1]
    assert stopped[1][-1].finish == "stop"
    assert [output.finish for output in stopped[2]] == [None, None, "length"]


def test_waiting_requests_start_when_slots_are_free(make_core: MakeCore) -> None:
    core = make_core(slots=1)
    for request_id in (1, 2):
        core.submit(submit(request_id, 4, max_tokens=2))
    started = []
    while core.busy:
        started.append([(one.request_id, one.cached_tokens) for one in core.step().started])
    assert started == [[(1, 0)], [], [(2, 0)], []]


def test_a_request_runs_since_its_first_chunk_was_scheduled(
    make_core: MakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, now = make_core(), 100.0
    stage = core._pipeline._stages[0]
    work = stage.submit

    def take_two_seconds(*arguments: Any) -> Ticket:
        nonlocal now
        now += 2.0
        return work(*arguments)

    monkeypatch.setattr(stage, "submit", take_two_seconds)
    monkeypatch.setattr("llmd.engine.core.time.perf_counter", lambda: now)
    core.submit(submit(1, 20))
    now += 50.0  # waiting time does not count as running time
    (started,) = core.step().started
    assert 2.0 <= started.running_s <= 8.0, "the step, and the next ones if several are in flight"


def test_cancelling_frees_blocks_in_every_phase(make_core: MakeCore) -> None:
    core = make_core(slots=2)
    core.submit(submit(1, 4))
    core.submit(submit(2, 400))
    core.submit(submit(3, 4))
    core.step()
    for request_id in (3, 2, 1, 99):  # waiting, in prefill, decoding, unknown
        core.cancel(request_id)
    assert not finish(core)
    report = core.report()
    assert not core.busy
    assert (report.running, report.waiting, report.kv_blocks_used) == (0, 0, 0)


def test_blocks_are_free_after_every_request_ended(make_core: MakeCore) -> None:
    core = make_core()
    run(core, *REQUESTS)
    assert core.report().kv_blocks_used == 0


@pytest.mark.parametrize("cuts", [(), (3,)], ids=["one stage", "two stages"])
def test_tokens_do_not_depend_on_preemption(make_core: MakeCore, cuts: tuple[int, ...]) -> None:
    """The pool holds little more than one of the requests."""
    requests = [submit(n, 60, max_tokens=40, temperature=float(n % 2)) for n in range(1, 7)]
    small, large = make_core(slots=6, budget_bytes=120_000, cuts=cuts), make_core(slots=6, cuts=cuts)
    tight, free = run(small, *requests), run(large, *requests)
    assert {n: ids(tokens) for n, tokens in tight.items()} == {n: ids(tokens) for n, tokens in free.items()}
    assert small.report().preemptions >= 3
    assert large.report().preemptions == 0
    assert small.report().kv_blocks_used == 0


def test_tokens_do_not_depend_on_the_prefix_cache(make_core: MakeCore) -> None:
    fresh, used = make_core(), make_core()
    request = submit(7, 300, temperature=0.8)
    run(used, Submit(1, request.prompt[:200], request.sampling, request.stop))
    assert ids(run(used, request)[7]) == ids(run(fresh, request)[7])
    assert used.report().cached_tokens >= 192
    assert fresh.report().cached_tokens == 0


def test_penalties_are_the_same_after_a_preemption_and_a_resubmission(make_core: MakeCore) -> None:
    sampling = SamplingParams(seed=3, temperature=0.7, repetition_penalty=1.3, frequency_penalty=0.5)
    requests = [msgspec.structs.replace(submit(n, 60, max_tokens=40), sampling=sampling) for n in range(1, 5)]
    free, small = run(make_core(), *requests), make_core(budget_bytes=120_000)
    tight = run(small, *requests)
    assert small.report().preemptions > 0
    assert {n: ids(tokens) for n, tokens in tight.items()} == {n: ids(tokens) for n, tokens in free.items()}
    again = msgspec.structs.replace(requests[0], output=tuple(ids(free[1])[:20]))
    assert ids(run(make_core(), again)[1]) == ids(free[1])[20:]


def test_requests_of_another_salt_share_nothing(make_core: MakeCore) -> None:
    core = make_core()
    request = submit(1, 300)
    run(core, request)
    run(core, Submit(2, request.prompt, request.sampling, request.stop, cache_salt="another user"))
    assert core.report().cached_tokens == 0


def test_a_more_urgent_request_starts_first(make_core: MakeCore) -> None:
    core = make_core(slots=1)
    for request_id, priority in ((1, 3), (2, 0), (3, -1)):
        core.submit(msgspec.structs.replace(submit(request_id, 4, max_tokens=1), priority=priority))
    assert [core.step().tokens[0].request_id for _ in range(3)] == [3, 2, 1]


@pytest.mark.parametrize("cuts", [(), (4,)], ids=["one stage", "two stages"])
@pytest.mark.parametrize("call", ["submit", "wait"])
def test_a_failed_step_leaves_lengths_unchanged_and_can_be_repeated(
    make_core: MakeCore, monkeypatch: pytest.MonkeyPatch, cuts: tuple[int, ...], call: str
) -> None:
    expected = ids(run(make_core(), submit(1, 20))[1])
    core = make_core(cuts=cuts)
    core.submit(submit(1, 20))
    tokens = [core.step().tokens[0].token]
    last = core._pipeline._stages[-1]
    with monkeypatch.context() as patch:

        def fail(ticket: Ticket, *_arguments: object) -> None:
            if call == "wait":
                last.release(ticket)  # as the contract requires
            raise DeviceError("lost")

        patch.setattr(last, call, fail)
        with pytest.raises(DeviceError, match="lost"):
            step_until(core, tokens)
    while core.busy:
        tokens += [token.token for token in core.step().tokens]
    assert tokens == expected


def test_a_step_that_fails_between_two_draws_loses_no_token(
    make_core: MakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirostat = SamplingParams(seed=3, mirostat=Mirostat(1))
    requests = (
        submit(1, 5, max_tokens=1),
        msgspec.structs.replace(submit(2, 1, max_tokens=3), sampling=mirostat),
        msgspec.structs.replace(submit(3, 1, max_tokens=3), sampling=mirostat),
    )
    expected = {key: ids(tokens) for key, tokens in run(make_core(), *requests).items()}
    core = make_core()
    for request in requests:
        core.submit(request)
    fetches = 0
    fetch = StepTickets.edited_row

    def fail_at_the_second(tickets: StepTickets, output: int) -> object:
        nonlocal fetches
        fetches += 1
        if fetches == 2:
            raise DeviceError("lost")
        return fetch(tickets, output)

    monkeypatch.setattr(StepTickets, "edited_row", fail_at_the_second)
    with pytest.raises(DeviceError, match="lost"):
        core.step()
    assert {key: ids(tokens) for key, tokens in finish(core).items()} == expected


SAMPLED = [
    SamplingParams(seed=1, mirostat=Mirostat(1, tau=3.0)),
    SamplingParams(seed=2, mirostat=Mirostat(2, tau=4.0, eta=0.5), temperature=1.3),
    SamplingParams(
        seed=3,
        dry=Dry(0.8, 1.75, 1, 64, break_ids=(7,)),
        repetition_penalty=1.1,
        presence_penalty=0.4,
        penalty_last_n=16,
    ),
    SamplingParams(seed=4, order=LLAMA_CPP_ORDER, typical_p=0.9, temperature=1.2, xtc=Xtc(0.5, 0.02)),
    SamplingParams(seed=5, dynamic_temperature=DynamicTemperature(0.5), bad_words=((4, 5), (6,))),
]


def test_every_sampler_draws_the_same_after_a_preemption_and_a_resubmission(make_core: MakeCore) -> None:
    requests = [
        msgspec.structs.replace(submit(n, 60, max_tokens=40), sampling=sampling)
        for n, sampling in enumerate(SAMPLED, start=1)
    ]
    free, small = run(make_core(slots=5), *requests), make_core(slots=5, budget_bytes=120_000)
    tight = run(small, *requests)
    assert small.report().preemptions >= 2
    assert {n: ids(tokens) for n, tokens in tight.items()} == {n: ids(tokens) for n, tokens in free.items()}
    for request in requests:
        tokens = free[request.request_id]
        again = msgspec.structs.replace(request, output=tuple(ids(tokens[:20])), state=tokens[19].state)
        assert run(make_core(), again)[request.request_id] == tokens[20:]


def test_only_allowed_tokens_are_drawn(make_core: MakeCore) -> None:
    sampling = SamplingParams(seed=1, temperature=5.0, allowed_ids=(3, 50, 99), frequency_penalty=0.1)
    tokens = run(make_core(), msgspec.structs.replace(submit(1, 20, max_tokens=40), sampling=sampling))[1]
    assert set(ids(tokens)) == {3, 50, 99}


@pytest.mark.parametrize("length", [60, 300], ids=["one chunk", "two chunks"])
def test_answers_to_one_prompt_share_its_prefill(make_core: MakeCore, length: int) -> None:
    requests = choices(submit(1, length, temperature=1.3, logprobs=2), 4)
    alone = {n: run(make_core(), request)[n] for n, request in enumerate(requests)}
    core = make_core()
    assert run(core, *requests) == alone
    assert core.report().prompt_tokens == length
    assert core.report().kv_blocks_used == 0


def test_answers_beyond_the_slots_find_the_prompt_cached(make_core: MakeCore) -> None:
    requests = choices(submit(1, 64, temperature=1.3), 9)
    alone = {n: ids(run(make_core(), request)[n]) for n, request in enumerate(requests)}
    core = make_core(slots=4)
    assert {n: ids(tokens) for n, tokens in run(core, *requests).items()} == alone
    assert core.report().prompt_tokens < 3 * 64


@pytest.mark.parametrize("gone", [0, 2], ids=["the one that computes the prompt", "another"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_the_other_answers_go_on_when_one_is_cancelled(make_core: MakeCore, gone: int, after: int) -> None:
    requests = choices(submit(1, 300, temperature=1.3), 4)
    alone = {n: ids(run(make_core(), request)[n]) for n, request in enumerate(requests) if n != gone}
    core = make_core()
    for request in requests:
        core.submit(request)
    early: dict[int, list[TokenOutput]] = {n: [] for n in alone}
    for _ in range(after):
        for token in core.step().tokens:
            early.setdefault(token.request_id, []).append(token)
    core.cancel(gone)
    late = finish(core)
    assert {n: ids([*early[n], *late[n]]) for n in alone} == alone
    assert core.report().kv_blocks_used == 0
