"""Measures the time from a server's command to its first token, with the same client for both sides.

The client connects as soon as the port listens and requests one token. A server that is still loading may
hold the request, like llmd, or answer 503, like llama.cpp's; then the client retries.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from bench.servers import family_cpu_s

POLL_S = 0.01
"""Delay between attempts to connect, and between requests after a 503."""
LIMIT_S = 600.0
IDLE_S = 4.0
"""A server without CPU time for this long has finished its background work, which llmd starts after 3 s."""
MODEL = "model"
"""The name of the model on both servers."""


@dataclass(frozen=True)
class Launched:
    """A started server, which may not listen yet."""

    process: subprocess.Popen[bytes]
    port: int
    began: float

    def listening_s(self) -> float:
        """Wait until its port listens; return the seconds since its command."""
        while not self._listens():
            self._wait()
        return time.perf_counter() - self.began

    def first_token_s(self, prompt: Sequence[int]) -> float:
        """Ask until it answers a prompt with a token; return the seconds since its command."""
        self.listening_s()
        self.ask(prompt)
        return time.perf_counter() - self.began

    def ask(self, prompt: Sequence[int]) -> None:
        """Ask until it answers a prompt with a token."""
        body = {"model": MODEL, "prompt": list(prompt), "max_tokens": 1, "temperature": 0}
        while self.post("/v1/completions", body) == HTTPStatus.SERVICE_UNAVAILABLE:
            self._wait()

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        """Send a request, read the whole response and return its status: 200 or 503.

        Raises:
            RuntimeError: another status.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status not in {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}:
            raise RuntimeError(f"{self.process.args!r} answered {path} with {response.status}: {text}")
        return response.status

    def wait_until_idle(self) -> None:
        """Wait until it has finished background work, such as writing a cache."""
        before_s = -1.0
        while (now_s := self.cpu_s()) > before_s:
            before_s = now_s
            time.sleep(IDLE_S)

    def cpu_s(self) -> float:
        """Return the CPU time of the server and its descendants so far."""
        return family_cpu_s(self.process.pid)

    def _listens(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.connect()
        except ConnectionRefusedError:
            return False
        finally:
            connection.close()
        return True

    def _wait(self) -> None:
        time.sleep(POLL_S)
        if self.process.poll() is not None:
            raise RuntimeError(
                f"{self.process.args!r} ended with {self.process.returncode} before it answered"
            )


@contextmanager
def launched(command: Sequence[str], port: int, environment: Mapping[str, str]) -> Iterator[Launched]:
    """Start a server and stop it at the end of the block."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | dict(environment))
    try:
        yield Launched(process, port, began)
    finally:
        process.terminate()
        process.wait()
