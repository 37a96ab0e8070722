"""Raw logits, computed between the steps of requests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from llmd.api import RequestError
from llmd.engine.core import EngineCore
from tests.serving.cores import ids, prompt, run, submit

MakeCore = Callable[..., EngineCore]


def test_greedy_tokens_are_the_argmax_of_forward(make_core: MakeCore) -> None:
    core = make_core()
    tokens = ids(run(core, submit(1, 20, max_tokens=6))[1])
    logits = core.forward(np.array([*prompt(1, 20), *tokens[:-1]], np.int32))
    assert logits[19:].argmax(axis=1).tolist() == tokens


def test_forward_keeps_to_the_chunks_that_blocks_were_promised_for(make_core: MakeCore) -> None:
    tokens = np.array(prompt(1, 400), np.int32)
    many_slots = make_core(slots=320, budget_bytes=1 << 22)
    assert np.array_equal(many_slots.forward(tokens), make_core().forward(tokens))


def test_forward_refuses_what_does_not_fit(make_core: MakeCore) -> None:
    core = make_core()
    with pytest.raises(RequestError, match="no tokens"):
        core.forward(np.zeros(0, np.int32))
    with pytest.raises(RequestError, match="513 prompt tokens"):
        core.forward(np.zeros(513, np.int32))
    with pytest.raises(RequestError, match="vocabulary has"):
        core.forward(np.array([1 << 40]))
