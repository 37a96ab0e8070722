"""A daemon that plays a recording."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Event
from llmd_tui.demo.recording import Recording

SHIPPED = Path(__file__).with_name("recording.jsonl.gz")


class RecordedDaemon:
    """Plays a recording again and again. It answers what was recorded, and refuses what changes something."""

    address = "a recording"

    def __init__(
        self,
        recording: Recording,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._recording = recording
        self._clock = clock
        self._sleep = sleep
        self._began = clock()

    @classmethod
    def shipped(cls) -> Self:
        """Return a daemon with the recording that comes with this package."""
        return cls(Recording.read(SHIPPED))

    async def events(self, after: int | None = None) -> AsyncGenerator[Event, None]:
        while True:
            self._began = self._clock()
            for entry in self._recording.events:
                await self._wait_until(self._began + entry.at_s)
                fields = entry.event or {}
                yield Event(str(fields.get("type")), int(fields.get("number", 0)), fields)
            await self._sleep(1.0)

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        answer = self._recording.answer(path, self._clock() - self._began)
        if answer is None:
            raise _not_recorded(path)
        return dict(answer)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._recording.answer(path, self._clock() - self._began)
        if answer is None:
            raise _not_recorded(path)
        return dict(answer)

    async def delete(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        raise _not_recorded(path)

    async def lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        async for piece in self._pieces(path):
            yield piece

    async def stream(
        self, path: str, body: Mapping[str, Any] | None = None, **query: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        async for piece in self._pieces(path):
            yield piece
        if body is None:  # what is followed has no end
            await asyncio.Event().wait()

    async def close(self) -> None:
        """There is nothing to end."""

    async def _pieces(self, path: str) -> AsyncGenerator[dict[str, Any], None]:
        pieces = [one for one in self._recording.pieces if one.stream == path]
        if not pieces:
            raise _not_recorded(path)
        began = self._clock()
        for piece in pieces:
            await self._wait_until(began + piece.at_s)
            yield dict(piece.answer)

    async def _wait_until(self, moment: float) -> None:
        left = moment - self._clock()
        if left > 0:
            await self._sleep(left)


def _not_recorded(path: str) -> LlmdError:
    return LlmdError(f"the recording has no answer for {path}", hint="run `llmd tui` without --demo")
