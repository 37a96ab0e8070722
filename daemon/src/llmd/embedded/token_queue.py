"""Requests of several callers in one engine core:
the caller that needs a token runs a step for all requests.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import LlmdError
from llmd.api.messages import BeamParams, Grammar, StopParams, Submit, Vocabulary
from llmd.api.reports import Report
from llmd.api.results import Output, TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.chat.answers.found_tokens import found_tokens
from llmd.engine.core import EngineCore
from llmd.engine.failures import error_of


class TokenQueue:
    """Thread-safe access to an engine core. Concurrent requests share steps, as in the daemon.

    After `close`, everything except `cancel` raises `LlmdError`.
    """

    def __init__(self, core: EngineCore) -> None:
        self._open_core: EngineCore | None = core
        self._turn = threading.Lock()
        self._door = threading.Lock()
        self._cancelled: deque[int] = deque()
        self._ids = itertools.count()
        self._waiting: dict[int, deque[TokenOutput]] = {}
        self._failed: dict[int, LlmdError] = {}
        self._knows_vocabulary = False

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Set the vocabulary for grammars.
        Call it before the first request with a grammar; later calls do nothing.
        """
        with self._taken():
            if not self._knows_vocabulary:
                self._core.set_vocabulary(vocabulary)
            self._knows_vocabulary = True

    def submit(
        self,
        prompt: tuple[int, ...],
        sampling: SamplingParams,
        stop: StopParams,
        grammar: Grammar | None = None,
        beams: BeamParams | None = None,
        adapter: str = "",
    ) -> int:
        """Queue a request; returns its id.

        Raises:
            RequestError: it can never run.
            MemoryBudgetError: the KV pool is too small for it.
        """
        with self._taken():
            request_id = next(self._ids)
            request = Submit(
                request_id, prompt, sampling, stop, grammar=grammar, beams=beams, adapter=adapter
            )
            self._core.submit(request)
            self._waiting[request_id] = deque()
            return request_id

    def next(self, request_id: int) -> TokenOutput:
        """Return the next token of a request that has not ended.

        Raises:
            DeviceError: a device failed.
            GrammarError: the request's grammar cannot be followed.
        """
        while True:
            with self._taken():
                core = self._core
                if not self._waiting[request_id] and request_id not in self._failed:
                    self._hand_out(core.step())
                if request_id in self._failed:
                    raise self._failed[request_id]
                if self._waiting[request_id]:
                    return self._waiting[request_id].popleft()

    def cancel(self, request_id: int) -> None:
        """Forget a request, which may have ended.
        If another caller has the turn, this happens before the next turn.

        Never blocks: the garbage collector may close abandoned streams at any time, even within a step.
        """
        self._cancelled.append(request_id)
        if self._turn.acquire(blocking=False):
            try:
                self._forget_cancelled()
            finally:
                self._turn.release()

    def forward(self, ids: NDArray[np.integer], adapter: str = "") -> NDArray[np.float32]:
        """Like `EngineCore.forward`; runs between two steps."""
        with self._taken():
            return self._core.forward(ids, adapter)

    def report(self) -> Report:
        with self._taken():
            return self._core.report()

    def reset_counters(self) -> None:
        with self._taken():
            self._core.reset_counters()

    def close(self) -> None:
        """Wait for the running step, then stop using the core."""
        with self._taken():
            self._open_core = None

    def check_open(self) -> None:
        """Raise `LlmdError` if the queue is closed."""
        with self._taken():
            _ = self._core

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Take one turn. The thread that waits for it holds ``_door``,
        so that no thread gets two turns in a row.
        """
        with self._door:
            self._turn.acquire()
        try:
            self._forget_cancelled()
            yield
        finally:
            self._turn.release()

    def _forget_cancelled(self) -> None:
        while self._cancelled:
            request_id = self._cancelled.popleft()
            self._waiting.pop(request_id, None)
            self._failed.pop(request_id, None)
            if self._open_core is not None:
                self._open_core.cancel(request_id)

    @property
    def _core(self) -> EngineCore:
        if self._open_core is None:
            raise LlmdError("the engine is closed", hint="load the model again")
        return self._open_core

    def _hand_out(self, output: Output) -> None:
        for token in output.tokens:
            self._waiting[token.request_id].append(token)
        for ended in output.beams:
            self._waiting[ended.request_id] += found_tokens(ended.request_id, ended.hypotheses[0])
        for one in output.failed:
            if one.request_id in self._waiting:
                self._failed[one.request_id] = error_of(one)
