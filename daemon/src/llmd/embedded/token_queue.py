"""Requests of several callers in one engine core: whoever needs a token runs a step for all."""

from __future__ import annotations

import itertools
import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from llmd.api.messages import Output, Report, SamplingParams, StopParams, Submit, TokenOutput
from llmd.engine.core import EngineCore


class TokenQueue:
    """Thread-safe. Requests that run at the same time share steps, as in the daemon."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._turn = threading.Lock()
        self._ids = itertools.count()
        self._waiting: dict[int, deque[TokenOutput]] = {}

    def submit(self, prompt: tuple[int, ...], sampling: SamplingParams, stop: StopParams) -> int:
        """Queue a request; returns its id.

        Raises:
            RequestError: it could never run.
            MemoryBudgetError: the KV pool is too small for it.
        """
        with self._turn:
            request_id = next(self._ids)
            self._core.submit(Submit(request_id, prompt, sampling, stop))
            self._waiting[request_id] = deque()
            return request_id

    def next(self, request_id: int) -> TokenOutput:
        """The next token of a request that has not ended.

        Raises:
            DeviceError: a device failed.
        """
        with self._turn:
            mine = self._waiting[request_id]
            while not mine:
                self._hand_out(self._core.step())
            return mine.popleft()

    def cancel(self, request_id: int) -> None:
        """Forget a request, also one that has ended."""
        with self._turn:
            self._core.cancel(request_id)
            self._waiting.pop(request_id, None)

    def forward(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """As `EngineCore.forward`, between two steps."""
        with self._turn:
            return self._core.forward(ids)

    def report(self) -> Report:
        with self._turn:
            return self._core.report()

    def reset_counters(self) -> None:
        with self._turn:
            self._core.reset_counters()

    def _hand_out(self, output: Output) -> None:
        for token in output.tokens:
            self._waiting[token.request_id].append(token)
