"""Questions to an engine that it has not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from llmd.api.errors import EngineCrashedError

ANSWER_LIMIT_S = 2.0
"""An engine that is busy with one step for longer than this gives no answer."""

Answer = TypeVar("Answer")


class PendingAnswers(Generic[Answer]):
    """Questions of one kind. One answer is given to all whom it satisfies. Use on the event loop only."""

    def __init__(self) -> None:
        self._pending: list[tuple[asyncio.Future[Answer], Callable[[Answer], bool]]] = []

    async def wait(self, accepts: Callable[[Answer], bool] = lambda _answer: True) -> Answer | None:
        """Wait for the next answer for which ``accepts`` is true.

        None: the engine dies, or takes longer than `ANSWER_LIMIT_S`.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending.append((answer, accepts))
        try:
            return await asyncio.wait_for(answer, ANSWER_LIMIT_S)
        except (EngineCrashedError, TimeoutError):
            return None

    def answer(self, answer: Answer) -> None:
        """Give an answer to all who accept it."""
        pending, self._pending = self._pending, []
        for future, accepts in pending:
            if future.done():
                continue
            if accepts(answer):
                future.set_result(answer)
            else:
                self._pending.append((future, accepts))

    def fail(self, how: str) -> None:
        """End all questions because the engine died; ``how`` describes its end."""
        pending, self._pending = self._pending, []
        for future, _ in pending:
            if not future.done():
                future.set_exception(EngineCrashedError(f"the engine died ({how})"))
