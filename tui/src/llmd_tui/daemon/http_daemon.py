"""A daemon over HTTP, on TCP or a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec
from aiohttp import ClientResponse, ClientSession, ClientTimeout

from llmd.api.errors import ContextLengthError, DaemonUnreachableError, LlmdError
from llmd.client import find_daemon
from llmd.config import Address, TcpAddress, UnixAddress
from llmd_tui.daemon.access import Event, RefusedError

DATA = b"data:"
DONE = b"[DONE]"
INTERFACE = {"x-llmd-interface": "tui"}
"""What an interface only looks at is not in the log."""
CONNECT_S = 5.0
MAX_LINE_BYTES = 4 << 20
"""A longer line is not one of a daemon's."""


class HttpDaemon:
    """The first daemon that answers at one of the addresses; they are tried again when it is gone."""

    def __init__(
        self, addresses: Sequence[Address], *, key: str | None = None, ca_file: str | None = None
    ) -> None:
        """``addresses`` are from `llmd.client.candidates`; ``ca_file`` is a certificate to trust."""
        self._addresses = addresses
        self._headers = INTERFACE | ({"Authorization": f"Bearer {key}"} if key else {})
        self._ca_file = ca_file
        self._address: Address | None = None
        self._session: ClientSession | None = None
        self._open_requests: Counter[ClientSession] = Counter()

    @property
    def address(self) -> str:
        return str(self._address or self._addresses[0])

    async def events(self, after: int | None = None) -> AsyncGenerator[Event, None]:
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async for fields in self._stream("GET", "/llmd/events", None, headers, {}):
            yield Event(str(fields.get("type", "")), int(fields.get("number", 0)), fields)

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        async with self._reply("GET", path, query=query) as reply:
            return _decoded(await reply.read())

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        async with self._reply("POST", path, body) as reply:
            return _decoded(await reply.read())

    async def delete(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        async with self._reply("DELETE", path, body) as reply:
            return _decoded(await reply.read())

    async def lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        async with self._reply("POST", path, body) as reply:
            async for line in _lines(reply):
                step = _decoded(line)
                if "error" in step:
                    raise _refusal(step)
                yield step

    async def stream(
        self, path: str, body: Mapping[str, Any] | None = None, *, request_id: str = "", **query: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        headers = {"x-request-id": request_id} if request_id else {}
        async for fields in self._stream("GET" if body is None else "POST", path, body, headers, query):
            yield fields

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _stream(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
    ) -> AsyncGenerator[dict[str, Any], None]:
        async with self._reply(method, path, body, headers, query) as reply:
            async for line in _lines(reply):
                data = line.removeprefix(DATA).strip()
                if not line.startswith(DATA) or data == DONE:
                    continue
                fields = _decoded(data)
                if isinstance(fields.get("error"), dict):
                    raise _refusal(fields)
                yield fields

    @contextlib.asynccontextmanager
    async def _reply(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[ClientResponse]:
        session = await self._opened()
        self._open_requests[session] += 1
        content = None if body is None else msgspec.json.encode(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        try:
            async with session.request(
                method, self._url(path), data=content, headers=sent, params=query
            ) as reply:
                if reply.status >= 400:
                    raise _refusal(_decoded(await reply.read()))
                yield reply
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) and session is self._session:
                self._session = None  # the next request looks for a daemon again
            cut = isinstance(error, aiohttp.ClientPayloadError)
            reason = "it ended in the middle of a reply" if cut else str(error)
            raise DaemonUnreachableError(
                f"the connection to the daemon at {self.address} was lost: {reason}",
                hint="see its log, or start it with `llmd serve`",
            ) from error
        finally:
            await self._leave(session)

    async def _leave(self, session: ClientSession) -> None:
        """End a request; close its session if it was the last one and the session is used no more.

        A session that is closed earlier would leave its other streams without an end.
        """
        self._open_requests[session] -= 1
        if not self._open_requests[session]:
            del self._open_requests[session]
            if session is not self._session:
                await session.close()

    async def _opened(self) -> ClientSession:
        """Return the session with the daemon; find one if there is none.

        Raises:
            DaemonUnreachableError: no daemon answers.
        """
        if self._session is not None:
            return self._session
        address = await asyncio.to_thread(find_daemon, self._addresses)
        if self._session is None:  # else another request has opened one meanwhile
            self._address = address
            self._session = self._session_with(address)
        return self._session

    def _session_with(self, address: Address) -> ClientSession:
        path = str(address.path) if isinstance(address, UnixAddress) else None
        connector = aiohttp.UnixConnector(path, limit=0) if path else self._tcp()
        # No limit for silence: a stream of events may be silent for long.
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_S)
        return ClientSession(connector=connector, headers=self._headers, timeout=timeout)

    def _tcp(self) -> aiohttp.TCPConnector:
        context = ssl.create_default_context(cafile=self._ca_file)
        return aiohttp.TCPConnector(limit=0, ssl=context)

    def _url(self, path: str) -> str:
        address = self._address
        return f"{address.url}{path}" if isinstance(address, TcpAddress) else f"http://llmd{path}"


async def _lines(reply: ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of a reply as they arrive, without their ends."""
    rest = b""
    async for piece in reply.content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line.strip():
                yield line.rstrip(b"\r")
        if len(rest) > MAX_LINE_BYTES:
            raise _stranger()
    if rest.strip():
        yield rest


def _decoded(content: bytes) -> dict[str, Any]:
    if not content:  # as ``/api/copy`` answers
        return {}
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _stranger() from error


def _refusal(body: Mapping[str, Any]) -> LlmdError:
    """Return the error of a reply."""
    error = body.get("error")
    if isinstance(error, dict) and error.get("code") == "context_length_exceeded":
        return ContextLengthError(int(error.get("n_prompt_tokens", 0)), int(error.get("n_ctx", 0)))
    if isinstance(error, dict) and error.get("type") in {"authentication_error", "permission_error"}:
        may_chat = error["type"] == "permission_error"
        return RefusedError(str(error.get("message")), hint=str(error.get("hint") or ""), may_chat=may_chat)
    if isinstance(error, dict):
        return LlmdError(str(error.get("message", error)), hint=str(error.get("hint") or ""))
    return LlmdError(str(error)) if error else _stranger()


def _stranger() -> LlmdError:
    return LlmdError("the server at this address is not an llmd daemon", hint="check --host")
