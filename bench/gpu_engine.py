"""Requests through an engine core on a card: the time of tokens, and the share of the host in a step."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from llmd.api import Device, LoadedWeights, ModelPlan
from llmd.api.messages import StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.benchmark.engine_loop import build_core, idle_share
from llmd.engine.core import EngineCore
from llmd.engine.steps.step_trace import Tracer


@dataclass(frozen=True)
class Answered:
    """Requests that began together; means of them."""

    first_s: float
    """Seconds to the first token."""
    token_s: float
    """Seconds between two tokens after that."""


class Served:
    """A model behind an engine core, without HTTP. Prompts differ, so that no prefix is cached."""

    def __init__(
        self,
        device: Device,
        plan: ModelPlan,
        weights: LoadedWeights,
        streams: int,
        tracer: Tracer | None = None,
    ) -> None:
        """With ``tracer``, the device keeps the times of its steps, which costs it some microseconds each."""
        self._core, _ = build_core(device, plan, weights, streams, tracer=tracer)
        self._tracer = tracer
        self._vocab = plan.vocab_size
        self._asked = 0

    def answer(self, streams: int, prompt_len: int, answer_len: int) -> Answered:
        """Answer requests that begin together, greedily and in full length."""
        asked = range(self._asked, self._asked + streams)
        self._asked += streams
        start_s = time.perf_counter()
        for request_id in asked:
            self._core.submit(self._request(request_id, prompt_len, answer_len))
        firsts, lasts = _run(self._core)
        return Answered(
            statistics.mean(firsts[request_id] - start_s for request_id in asked),
            statistics.mean(
                (lasts[request_id] - firsts[request_id]) / max(1, answer_len - 1) for request_id in asked
            ),
        )

    def host_share(self, streams: int, prompt_len: int, answer_len: int) -> float | None:
        """Return the share of a decode step in which the device does not compute.

        None: the device does not keep the times of its steps.
        """
        assert self._tracer is not None, "the steps are traced"
        self._tracer.steps.clear()
        self.answer(streams, prompt_len, answer_len)
        return idle_share(
            step for step in self._tracer.steps if step.num_rows == step.num_sequences == streams
        )

    def close(self) -> None:
        """Free the stage."""
        self._core.close()

    def _request(self, request_id: int, prompt_len: int, answer_len: int) -> Submit:
        prompt = np.random.default_rng(request_id).integers(0, self._vocab, prompt_len).tolist()
        return Submit(request_id, tuple(prompt), SamplingParams(0, 0.0), StopParams(answer_len))


def _run(core: EngineCore) -> tuple[dict[int, float], dict[int, float]]:
    """Run all requests to their end; return when the first and the last token of each came."""
    firsts: dict[int, float] = {}
    lasts: dict[int, float] = {}
    while core.busy:
        tokens = core.step().tokens
        now_s = time.perf_counter()
        for token in tokens:
            firsts.setdefault(token.request_id, now_s)
            lasts[token.request_id] = now_s
    return firsts, lasts
