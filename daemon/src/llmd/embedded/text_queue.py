"""Lets several callers use one embedding core, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llmd.api.errors import LlmdError
from llmd.api.messages import EmbedText
from llmd.api.reports import Report
from llmd.engine.embedding_core import EmbeddingCore


class TextQueue:
    """Thread-safe access to an embedding core. After `close`, everything raises `LlmdError`."""

    def __init__(self, core: EmbeddingCore) -> None:
        self._open_core: EmbeddingCore | None = core
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[tuple[int, ...]]) -> list[bytes]:
        """Return the pooled vector of each text as little-endian float32.

        Raises:
            RequestError: a text can never run.
            MemoryBudgetError: the KV pool is too small for a text.
            DeviceError: a device failed.
        """
        with self._taken() as core:
            found: dict[int, bytes] = {}
            try:
                for number, tokens in enumerate(texts):
                    core.submit(EmbedText(number, tokens))
                while core.busy:
                    found |= {one.request_id: one.vector for one in core.step().vectors}
            finally:
                for number in range(len(texts)):
                    core.cancel(number)
            return [found[number] for number in range(len(texts))]

    def report(self) -> Report:
        with self._taken() as core:
            return core.report()

    def reset_counters(self) -> None:
        with self._taken() as core:
            core.reset_counters()

    def close(self) -> None:
        """Wait for running texts, then stop using the core."""
        with self._turn:
            self._open_core = None

    @contextmanager
    def _taken(self) -> Iterator[EmbeddingCore]:
        with self._turn:
            if self._open_core is None:
                raise LlmdError("the engine is closed", hint="load the model again")
            yield self._open_core
