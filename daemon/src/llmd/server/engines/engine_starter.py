"""Starts engine processes, one of them before it is known which model it will run."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from llmd.server.engines.engine_process import GRACE_S, EngineProcess


class EngineStarter:
    """Starts engines with ``command``; an async context manager that ends the engine that nobody took.

    A process takes a few tenths of a second until it can load a model, most of them for imports. One that is started
    ahead does that while this process still imports what serving needs.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._ahead: EngineProcess | None = None

    async def start_ahead(self) -> None:
        """Start the engine that the next `start` returns; called once at most.

        Raises:
            OSError: the process cannot be started.
        """
        self._ahead = await EngineProcess.start(self._command)

    async def start(self, model: str) -> EngineProcess:
        """Return an engine that waits for its `Load`; ``model`` is what the log calls it.

        Raises:
            OSError: the process cannot be started.
        """
        engine, self._ahead = self._ahead, None
        if engine is not None and engine.has_ended:
            await engine.end(GRACE_S)
            engine = None
        engine = engine or await EngineProcess.start(self._command)
        engine.model = model
        return engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ahead is not None:
            await self._ahead.end(GRACE_S if self._ahead.has_ended else 0.0)
            self._ahead = None
