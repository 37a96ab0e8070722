"""A daemon that does what a test says, behind the interface's own protocol."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Event

REPORT = {
    "steps": 100,
    "running": 1,
    "waiting": 0,
    "prompt_tokens": 1000,
    "cached_tokens": 500,
    "output_tokens": 200,
    "preemptions": 0,
    "prefill_s": 1.0,
    "decode_s": 2.0,
    "kv_blocks_used": 40,
    "kv_blocks_total": 400,
}


class ScriptedDaemon:
    """``gets``, ``posts`` and ``deletes`` have the answer of each path.

    An answer that is an error is raised; a path without an answer is not found.
    """

    def __init__(self) -> None:
        self.address = "unix:/run/llmd/llmd.sock"
        self.gets: dict[str, dict[str, Any] | LlmdError] = {}
        self.posts: dict[str, dict[str, Any] | LlmdError] = {}
        self.deletes: dict[str, dict[str, Any] | LlmdError] = {}
        self.answers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {}
        """Instead of ``posts``: what makes the answer from the body."""
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        """Paths and bodies of all requests but events, oldest first; a GET has its query as body."""
        self.request_ids: list[str] = []
        """For each stream, the id that the interface gave it."""
        self.connected_after: list[int | None] = []
        """For each stream of events, the number that it goes on after."""
        self._events: asyncio.Queue[Event | LlmdError | None] = asyncio.Queue()
        self._streams: defaultdict[str, asyncio.Queue[dict[str, Any] | LlmdError | None]] = defaultdict(
            asyncio.Queue
        )
        self.left: list[str] = []
        """Paths of streams that the interface ended before their end."""
        self._number = 0

    def send(self, kind: str, **fields: Any) -> None:
        """Send an event."""
        self._number += 1
        self._events.put_nowait(Event(kind, self._number, {"type": kind, "number": self._number, **fields}))

    def snapshot(
        self, *, models: tuple[dict[str, Any], ...] = (), requests: tuple[dict[str, Any], ...] = ()
    ) -> None:
        self.send("snapshot", version="0.1.0", models=models, requests=requests, processes={})

    def drop(self, error: LlmdError | None = None) -> None:
        """End the stream of events, with an error or without."""
        self._events.put_nowait(error)

    def put(self, path: str, *pieces: dict[str, Any] | LlmdError | None) -> None:
        """Give pieces to the streams or lines of a path; None ends the one that reads it."""
        for piece in pieces:
            self._streams[path].put_nowait(piece)

    async def events(self, after: int | None = None) -> AsyncGenerator[Event, None]:
        self.connected_after.append(after)
        while (event := await self._events.get()) is not None:
            if isinstance(event, LlmdError):
                raise event
            yield event

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        self.asked.append((path, query))
        return _answer(self.gets, path)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body))
        return self.answers[path](body) if path in self.answers else _answer(self.posts, path)

    async def delete(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body))
        return _answer(self.deletes, path)

    async def lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        self.asked.append((path, body))
        async with aclosing(self._pieces(path)) as pieces:
            async for piece in pieces:
                yield piece

    async def stream(
        self, path: str, body: Mapping[str, Any] | None = None, *, request_id: str = "", **query: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        self.asked.append((path, query if body is None else body))
        self.request_ids.append(request_id)
        async with aclosing(self._pieces(path)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        pass

    async def _pieces(self, path: str) -> AsyncGenerator[dict[str, Any], None]:
        try:
            while (piece := await self._streams[path].get()) is not None:
                if isinstance(piece, LlmdError):
                    raise piece
                yield piece
        except (GeneratorExit, asyncio.CancelledError):
            self.left.append(path)
            raise


def model(name: str = "guide", status: str = "loaded", **changes: Any) -> dict[str, Any]:
    """A model of a report; ``changes`` are of its counters, except verdicts."""
    verdicts = changes.pop("verdicts", ())
    return {"name": name, "status": status, "waiting": 0, "report": REPORT | changes, "verdicts": verdicts}


def request(request_id: str = "r1", **fields: Any) -> dict[str, Any]:
    """The fields of a request."""
    plain = {"route": "/v1/chat/completions", "model": "guide", "prompt_tokens": 20, "ms": 1500.0}
    return {"phase": "progress", "request_id": request_id, "state": "decode", **plain, **fields}


def _answer(answers: Mapping[str, dict[str, Any] | LlmdError], path: str) -> dict[str, Any]:
    answer = answers.get(path, LlmdError(f"nothing at {path}"))
    if isinstance(answer, LlmdError):
        raise answer
    return answer
