"""What can never run is refused, with the numbers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import MemoryBudgetError, RequestError
from llmd.api.messages import SamplingParams, StopParams, Submit
from llmd.engine.core import EngineCore
from tests.serving.cores import ids, run, submit

MakeCore = Callable[..., EngineCore]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (submit(1, 0), "no tokens"),
        (submit(1, 5, max_tokens=0), "0 tokens are asked for"),
        (submit(1, 5, max_tokens=2, output=(7, 8)), "has as many"),
        (submit(1, 500, max_tokens=13), "context of 512"),
        (Submit(1, (131,), SamplingParams(seed=0), StopParams(1)), "vocabulary has 0..130"),
        (Submit(1, (-1,), SamplingParams(seed=0), StopParams(1)), "vocabulary has 0..130"),
    ],
    ids=["empty", "nothing to do", "already complete", "too long", "beyond the vocabulary", "negative"],
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
    ],
)
def test_ids_beyond_the_vocabulary_are_refused(make_core: MakeCore, field: str, value: object) -> None:
    sampling = msgspec.structs.replace(SamplingParams(seed=0), **{field: value})
    with pytest.raises(RequestError, match=r"names ids .*131, the vocabulary has"):
        make_core().submit(msgspec.structs.replace(submit(1, 5), sampling=sampling))
