"""Requests that can never run are refused; the message contains the numbers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import MemoryBudgetError, RequestError
from llmd.api.messages import BeamParams, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from tests.serving.cores import ids, run, submit

MakeCore = Callable[..., EngineCore]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (submit(1, 0), "no tokens"),
        (submit(1, 5, max_tokens=0), "max_tokens is 0 and the request already has 0"),
        (submit(1, 5, max_tokens=2, output=(7, 8)), "already has 2 output tokens"),
        (submit(1, 500, max_tokens=13), "context of 512"),
        (Submit(1, (131,), SamplingParams(seed=0), StopParams(1)), "vocabulary has 0..130"),
        (Submit(1, (-1,), SamplingParams(seed=0), StopParams(1)), "vocabulary has 0..130"),
        (
            Submit(1, (1,), SamplingParams(seed=0), StopParams(1), adapter="sql"),
            "without the adapter sql; its adapters are none",
        ),
    ],
    ids=[
        *("empty", "nothing to do", "already complete", "too long", "beyond the vocabulary", "negative"),
        "unknown adapter",
    ],
)
def test_a_request_that_can_never_run_is_refused(make_core: MakeCore, request_: Submit, message: str) -> None:
    core = make_core()
    with pytest.raises(RequestError, match=message):
        core.submit(request_)
    assert not core.busy


def test_a_request_larger_than_the_pool_is_refused(make_core: MakeCore) -> None:
    core = make_core(slots=1, budget_bytes=200_000)
    with pytest.raises(MemoryBudgetError, match="the KV pool holds"):
        core.submit(submit(1, 500))
    with pytest.raises(MemoryBudgetError, match="the KV pool holds"):
        core.forward(np.zeros(500, np.int32))
    assert ids(run(core, submit(2, 20))[2])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("logit_bias", ((131, 1.0),)),
        ("bad_words", ((1, 131),)),
        ("allowed_ids", (-1, 131)),
        ("logprob_ids", (0, 131)),
    ],
)
def test_ids_beyond_the_vocabulary_are_refused(make_core: MakeCore, field: str, value: object) -> None:
    sampling = msgspec.structs.replace(SamplingParams(seed=0), **{field: value})
    with pytest.raises(RequestError, match=r"names ids .*131, the vocabulary has"):
        make_core().submit(msgspec.structs.replace(submit(1, 5), sampling=sampling))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (msgspec.structs.replace(submit(1, 5), beams=BeamParams(5)), "1 answers of 5 beams .* 4 sequences"),
        (msgspec.structs.replace(submit(1, 5), beams=BeamParams(2, 3)), "3 answers of 2 beams"),
        (msgspec.structs.replace(submit(1, 5), beams=BeamParams(0, 0)), "0 answers of 0 beams"),
        (msgspec.structs.replace(submit(1, 5, output=(7,)), beams=BeamParams(2)), "can neither continue"),
        (msgspec.structs.replace(submit(1, 5), beams=BeamParams(2), prompt_logprobs=0), "nor score its"),
        (
            msgspec.structs.replace(submit(1, 5, stop_ids=tuple(range(63))), beams=BeamParams(2)),
            "2 beams with 63 stop ids need 65 candidates each, but a step returns 64",
        ),
    ],
    ids=["too wide", "more answers than beams", "no beams", "output", "scored", "stop ids"],
)
def test_a_search_that_can_never_run_is_refused(make_core: MakeCore, request_: Submit, message: str) -> None:
    core = make_core()
    with pytest.raises(RequestError, match=message):
        core.submit(request_)
    assert not core.busy


def test_a_search_larger_than_the_pool_is_refused_with_the_blocks(make_core: MakeCore) -> None:
    core = make_core(slots=4, budget_bytes=200_000)
    beams = msgspec.structs.replace(submit(1, 40, max_tokens=60), beams=BeamParams(4))
    with pytest.raises(
        MemoryBudgetError, match=r"4 beams .* need up to \d+ blocks of 16 tokens, the KV pool has"
    ):
        core.submit(beams)
    assert not core.busy


def test_a_pool_for_all_slots_has_room_for_a_beam_in_each(make_core: MakeCore) -> None:
    core = make_core(slots=4)
    core.submit(msgspec.structs.replace(submit(1, 40, max_tokens=472), beams=BeamParams(4)))
    core.cancel(1)
    with pytest.raises(RequestError, match="context of 512"):
        core.submit(msgspec.structs.replace(submit(1, 40, max_tokens=473), beams=BeamParams(4)))
