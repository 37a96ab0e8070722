"""Times a request on a loaded model, in this process: what `llmd plan` predicts, as it really is."""

from __future__ import annotations

import random
import statistics
import time

from llmd.api.messages import EmbedText, StopParams, Submit
from llmd.api.results import Output
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import LoadedModel
from llmd.engine.placement.alternatives import Measured
from llmd.engine.placement.typical_request import Request

ROUNDS = 3
GREEDY = SamplingParams(seed=0, temperature=0.0)


def time_requests(model: LoadedModel, request: Request, rounds: int = ROUNDS) -> Measured:
    """Run requests one after the other, each with a prompt of its own; return the medians of what they took.

    A round before them is not counted: it fills caches, and devices raise their clocks in it.

    Raises:
        LlmdError: the model cannot run the request.
    """
    times = [_time_request(model, request, number) for number in range(rounds + 1)][1:]
    totals = [total for _, total in times]
    prompt_s, request_s = statistics.median(first for first, _ in times), statistics.median(totals)
    return Measured(
        prompt_s,
        # The first token of the answer comes with the prompt.
        (request.answer_len - 1) / (request_s - prompt_s) if request.answer_len > 1 else None,
        request_s,
        max(totals) / min(totals),
    )


def _time_request(model: LoadedModel, request: Request, number: int) -> tuple[float, float]:
    """Return the seconds until the first and until the last token."""
    draw = random.Random(number)
    prompt = tuple(draw.randrange(model.loaded.vocab_size) for _ in range(request.prompt_len))
    began, first = time.perf_counter(), None
    _submit(model.runner, number, prompt, request.answer_len)
    while model.runner.busy:
        found = model.runner.step()
        if first is None and (found.tokens if isinstance(found, Output) else found.vectors):
            first = time.perf_counter() - began
    assert first is not None, "every request ends with a result"
    return first, time.perf_counter() - began


def _submit(
    runner: EngineCore | EmbeddingCore, number: int, prompt: tuple[int, ...], answer_len: int
) -> None:
    if isinstance(runner, EmbeddingCore):
        runner.submit(EmbedText(number, prompt))
    else:
        # A salt of its own, so that no earlier prompt is found in the prefix cache.
        salt = f"{time.perf_counter_ns()}"
        runner.submit(Submit(number, prompt, GREEDY, StopParams(answer_len), cache_salt=salt))
