"""The client of a benchmark. It does as little as possible per chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from llmd.api.decoding import prepared
from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.benchmark.load import Sample
from llmd.benchmark.target import Endpoint, Target
from llmd.benchmark.timeline import Outcome, Timeline, error_message
from llmd.client_errors import EXIT_REFUSED

CONNECT_LIMIT_S = 30.0
READ_BUFFER = 1 << 18
OK = 200
KEY_REFUSED = (401, 403)


class ServedName(Struct, frozen=True):
    """A model that a server lists."""

    name: str
    root: str
    """The directory or hub name that it was loaded from."""


class _Entry(Struct, frozen=True):
    id: str
    root: str | None = None


class _Listed(Struct, frozen=True):
    data: tuple[_Entry, ...] = ()


class BenchmarkClient(AbstractAsyncContextManager["BenchmarkClient"]):
    """Sends requests to one server. A request fails if its answer pauses for longer than ``silence_s``."""

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
        """Return the model of that name from ``/v1/models``, or the first. A named model need not be listed.

        Raises:
            DaemonUnreachableError: no server answers.
            LlmdError: the server refuses the key, or no model is named and the server lists none.
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
                status, content = response.status, await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise DaemonUnreachableError(
                f"no server answers at {self._place}: {error}",
                hint="check --base-url, or leave it out to start a temporary daemon",
            ) from error
        if status in KEY_REFUSED:
            refused = LlmdError(
                f"{self._place} refuses the request: {refusal(status, content)}",
                hint="set LLMD_API_KEY to a key from the server's owner",
            )
            refused.exit_code = EXIT_REFUSED
            raise refused
        try:
            entries = msgspec.json.decode(content, type=prepared(_Listed)).data
        except (msgspec.DecodeError, UnicodeDecodeError):
            return []
        return [ServedName(entry.id, entry.root or entry.id) for entry in entries]

    @property
    def _place(self) -> str:
        return str(self._target.socket or self._target.url)

    async def ask(self, endpoint: Endpoint, sample: Sample, request_id: str, *, arrived_s: float) -> Outcome:
        """Run one request to its end. Errors are reported in the outcome."""
        body = msgspec.json.encode(endpoint.body(sample))
        start_s = self._clock()
        timeline = Timeline(sample.prompt_len, start_s)
        try:
            error = await self._read(endpoint.path, body, request_id, timeline)
        except (aiohttp.ClientError, OSError, msgspec.DecodeError, UnicodeDecodeError) as exc:
            error = str(exc) or type(exc).__name__
        return timeline.outcome(start_s - arrived_s, error)

    async def _read(self, path: str, body: bytes, request_id: str, timeline: Timeline) -> str:
        """Feed the timeline; return why the server refused the request, or an empty text."""
        headers = {"x-request-id": request_id}
        async with self._session.post(self._target.url + path, data=body, headers=headers) as response:
            if response.status != OK:
                return refusal(response.status, await response.read())
            async for content in response.content.iter_any():
                timeline.feed(content, self._clock())
        return ""


def refusal(status: int, content: bytes) -> str:
    """Format the status and the error message of a refused request."""
    try:
        body: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = content.decode(errors="replace").strip()
    return f"{status}: {error_message(body)}" if body else str(status)
