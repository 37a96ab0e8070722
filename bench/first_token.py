"""How long a server takes from its command to its first token, by a client that treats both sides alike.

It connects as soon as the port listens and asks for one token. A server that is still loading may hold the request, as llmd
does, or answer 503, as llama.cpp's does; it is then asked again.
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
"""Between attempts to connect, and between requests that are answered with 503."""
LIMIT_S = 600.0
IDLE_S = 4.0
"""A server that took no processor time for this long has finished what it does in the background: llmd waits 3 s with that."""
MODEL = "model"
"""The name that both servers know their model by."""


@dataclass(frozen=True)
class Launched:
    """A server that was started a while ago, and may not listen yet."""

    process: subprocess.Popen[bytes]
    port: int
    began: float

    def listening_s(self) -> float:
        """Wait until its port listens; returns seconds since its command."""
        while not self._listens():
            self._wait()
        return time.perf_counter() - self.began

    def first_token_s(self, prompt: Sequence[int]) -> float:
        """Ask until it has answered a prompt with a token; returns seconds since its command."""
        self.listening_s()
        self.ask(prompt)
        return time.perf_counter() - self.began

    def ask(self, prompt: Sequence[int]) -> None:
        """Ask until it has answered a prompt with a token."""
        body = {"model": MODEL, "prompt": list(prompt), "max_tokens": 1, "temperature": 0}
        while self.post("/v1/completions", body) == HTTPStatus.SERVICE_UNAVAILABLE:
            self._wait()

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        """The status of an answer that was read to its end: 200, or 503.

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
        """Wait until it does nothing in the background any more, such as writing a cache."""
        before_s = -1.0
        while (now_s := self.cpu_s()) > before_s:
            before_s = now_s
            time.sleep(IDLE_S)

    def cpu_s(self) -> float:
        """Processor time of the server and of what it has started, until now."""
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
    """Start a server; it is ended with the block."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | dict(environment))
    try:
        yield Launched(process, port, began)
    finally:
        process.terminate()
        process.wait()
