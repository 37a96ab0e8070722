"""The client that puts the load on a server. It does as little as it can for each chunk, and says what that cost it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.benchmark.sample import Sample
from llmd.benchmark.target import Endpoint, Target
from llmd.benchmark.timeline import Outcome, Timeline, error_message

CONNECT_LIMIT_S = 30.0
READ_BUFFER = 1 << 18
OK = 200


class ServedName(Struct, frozen=True):
    """A model as a server lists it; ``root`` is what it was made from: a directory, or a name on a hub."""

    name: str
    root: str


class _Entry(Struct, frozen=True):
    id: str
    root: str | None = None


class _Listed(Struct, frozen=True):
    data: tuple[_Entry, ...] = ()


class BenchmarkClient(AbstractAsyncContextManager["BenchmarkClient"]):
    """Asks one server. ``silence_s`` is how long an answer may pause before it counts as failed."""

    def __init__(
        self,
        target: Target,
        headers: Mapping[str, str] | None = None,
        *,
        silence_s: float = 600.0,
        ca_file: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._target = target
        self._clock = clock
        self._session = aiohttp.ClientSession(
            connector=target.connector(ca_file),
            headers={"Content-Type": "application/json", **(headers or {})},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT_S, sock_read=silence_s),
            read_bufsize=READ_BUFFER,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def model(self, name: str | None) -> ServedName:
        """The model of that name as ``/v1/models`` lists it, or its first; a name need not be listed.

        Raises:
            DaemonUnreachableError: nothing answers there.
            LlmdError: it lists none where none was named.
        """
        listed = await self._models()
        for model in listed:
            if name in (None, model.name):
                return model
        if name is None:
            raise LlmdError(f"{self._place} lists no model", hint="name one with --model")
        return ServedName(name, name)

    async def _models(self) -> list[ServedName]:
        try:
            async with self._session.get(f"{self._target.url}/v1/models") as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise DaemonUnreachableError(
                f"no server answers at {self._place}: {error}",
                hint="check --base-url; without it a daemon is started",
            ) from error
        try:
            entries = msgspec.json.decode(content, type=_Listed).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            return []
        return [ServedName(entry.id, entry.root or entry.id) for entry in entries]

    @property
    def _place(self) -> str:
        return str(self._target.socket or self._target.url)

    async def ask(self, endpoint: Endpoint, sample: Sample, request_id: str, *, arrived_s: float) -> Outcome:
        """One request to its end. What goes wrong is said in the outcome."""
        body = msgspec.json.encode(endpoint.body(sample))
        start_s = self._clock()
        timeline = Timeline(sample.prompt_len, start_s)
        try:
            error = await self._read(endpoint.path, body, request_id, timeline)
        except (aiohttp.ClientError, OSError, msgspec.DecodeError, UnicodeDecodeError) as exc:
            error = str(exc) or type(exc).__name__
        return timeline.outcome(start_s - arrived_s, error)

    async def _read(self, path: str, body: bytes, request_id: str, timeline: Timeline) -> str:
        """Feed the timeline; returns why the server refused, if it did."""
        headers = {"x-request-id": request_id}
        async with self._session.post(self._target.url + path, data=body, headers=headers) as response:
            if response.status != OK:
                return refusal(response.status, await response.read())
            async for content in response.content.iter_any():
                timeline.feed(content, self._clock())
        return ""


def refusal(status: int, content: bytes) -> str:
    """The status of a refused request, and what its body says."""
    try:
        body: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = content.decode(errors="replace").strip()
    return f"{status}: {error_message(body)}" if body else str(status)
