"""Plain HTTP to a daemon under test: nothing between the test and the bytes."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from llmd.client_connection import connected
from llmd.config import Address, UnixAddress
from tests.serving.running import MODEL, RunningDaemon

LIMIT_S = 20.0


class Reply(Struct, frozen=True):
    """A whole reply."""

    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def lines(self) -> list[str]:
        """The events and comments of a stream, without the blank lines between them."""
        return [line for line in self.content.decode().split("\n") if line]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The JSON events of a stream."""
        data = [line.removeprefix("data: ") for line in self.lines if line.startswith("data: ")]
        return [json.loads(line) for line in data if line != "[DONE]"]


def send(
    daemon: RunningDaemon,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    unix: bool = False,
) -> Reply:
    """Send one request on a new connection; a body that is not bytes is sent as JSON."""
    address: Address = UnixAddress(daemon.socket) if unix else daemon.tcp
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(address)
    connection.sock.settimeout(LIMIT_S)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    with contextlib.closing(connection):
        connection.request(method, path, content, dict(headers or {}))
        with connection.getresponse() as reply:
            return Reply(reply.status, reply.headers, reply.read())


@contextlib.contextmanager
def open_stream(
    daemon: RunningDaemon,
    body: Mapping[str, Any],
    *,
    unix: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Iterator[http.client.HTTPResponse]:
    """A chat whose reply is read bit by bit; leaving closes the connection, whatever is still to come."""
    address: Address = UnixAddress(daemon.socket) if unix else daemon.tcp
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(address)
    connection.sock.settimeout(LIMIT_S)
    fields = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
    with contextlib.closing(connection):
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps({**fields, "stream": True, **body}),
            dict(headers or {}),
        )
        with connection.getresponse() as reply:
            yield reply


def chat(daemon: RunningDaemon, content: str = "Hello", /, **fields: Any) -> Reply:
    """Ask the model one question, with greedy sampling and few tokens unless the fields say otherwise."""
    defaults = {"model": MODEL, "max_tokens": 8, "temperature": 0}
    messages = [{"role": "user", "content": content}]
    return send(daemon, "POST", "/v1/chat/completions", {**defaults, "messages": messages, **fields})


def complete(daemon: RunningDaemon, prompt: Any = "Hello", /, **fields: Any) -> Reply:
    """Continue a prompt, greedily and for few tokens unless the fields say otherwise."""
    defaults = {"model": MODEL, "max_tokens": 8, "temperature": 0}
    return send(daemon, "POST", "/v1/completions", {**defaults, "prompt": prompt, **fields})
