"""What the engine of a daemon under test does at the moment."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from llmd.client_connection import connected
from llmd.config import Address, UnixAddress
from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon


@contextlib.contextmanager
def asked(
    daemon: RunningDaemon,
    body: dict[str, Any],
    *,
    unix: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Iterator[http.client.HTTPConnection]:
    """A request whose reply has not been awaited yet."""
    address: Address = UnixAddress(daemon.socket) if unix else daemon.tcp
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(address)
    fields = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
    with closing(connection):
        connection.request("POST", "/v1/chat/completions", json.dumps({**fields, **body}), headers or {})
        yield connection


def report(daemon: RunningDaemon) -> dict[str, Any]:
    """Counters of the engine of the only model."""
    (row,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
    counters: dict[str, Any] = row["report"]
    return counters


def wait_until(daemon: RunningDaemon, **expected: int) -> None:
    """Poll until the engine's counters have these values;
    the test's time limit ends a wait that never does.
    """
    while {name: report(daemon)[name] for name in expected} != expected:
        pass
