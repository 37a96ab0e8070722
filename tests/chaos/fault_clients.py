"""Clients that behave badly, in any number, and the resources that a daemon uses meanwhile.
`bench.faults` has them by the hundred.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from llmd.client import Client
from llmd.client_connection import connected
from llmd.config import Address

MODEL = "long"
CONTEXT_LEN = 4096
LONG = {"max_tokens": 1500, "ignore_eos": True}
# More than a Unix socket and the buffer of a stream (`BUFFER_TOKENS`) hold.
WIDE = {"max_tokens": 250, "ignore_eos": True, "logprobs": True, "top_logprobs": 20}
BUFFER_TOKENS = "64"
CHAT = "/v1/chat/completions"
READ_BYTES = 1 << 16
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 300,
    b"\r\n\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"model":',
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


class Levels(Struct, frozen=True):
    """The resources of the daemon: bytes and descriptors of the front and of the engine (0 if there is no
    engine), and KV blocks (-1 if the engine does not report them).
    """

    front_bytes: int
    front_descriptors: int
    engine_bytes: int
    engine_descriptors: int
    blocks_used: int
    running: int
    waiting: int


class Target(Struct, frozen=True):
    """A daemon in another process, on a Unix socket, whose small buffers make slow readers noticeable."""

    address: Address
    model: str

    def levels(self) -> Levels:
        """Return the resources in use now."""
        found = {
            (sample.name, sample.labels.get("process", "")): int(sample.value)
            for family in text_string_to_metric_families(self.get("/metrics").decode())
            for sample in family.samples
            if sample.name.startswith("llmd_")
        }
        engine = f"engine {self.model}"
        return Levels(
            found["llmd_resident_memory_bytes", "front"],
            found["llmd_open_descriptors", "front"],
            found.get(("llmd_resident_memory_bytes", engine), 0),
            found.get(("llmd_open_descriptors", engine), 0),
            found.get(("llmd_kv_blocks_used", ""), -1),
            found["llmd_requests_running", ""],
            found["llmd_requests_waiting", ""],
        )

    def get(self, path: str) -> bytes:
        """The body of a reply."""
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = connected(self.address)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read()

    def settled(self, before: Levels, limit_s: float = 60.0) -> Levels:
        """Return the resources once nothing runs and no descriptors are left over, or after the limit."""
        deadline = time.monotonic() + limit_s
        while True:
            now = self.levels()
            is_free = (now.running, now.waiting, now.blocks_used) == (0, 0, 0)
            if (is_free and now.front_descriptors <= before.front_descriptors) or time.monotonic() > deadline:
                return now
            time.sleep(0.05)

    def body(self, **fields: Any) -> bytes:
        """A chat."""
        messages = [{"role": "user", "content": "Hello"}]
        body = {"model": self.model, "messages": messages, "temperature": 0, "stream": True, **fields}
        return json.dumps(body).encode()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection that reads little ahead."""
        opened = connected(self.address)
        opened.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=opened, limit=READ_BYTES)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def head(length: int, headers: Mapping[str, str] | None = None) -> bytes:
    """The head of a chat request."""
    lines = [f"POST {CHAT} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def slow_readers(
    target: Target, count: int, fields: Mapping[str, Any], meanwhile: Callable[[], Any]
) -> int:
    """Open ``count`` streams, read nothing until ``meanwhile`` has returned,
    and return how many then complete.
    """
    may_read = asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def read_late() -> bool:
        async with target.connection() as (reader, writer):
            body = target.body(**fields)
            writer.write(head(len(body)) + body)
            await reader.readline()
            begun.release()
            await may_read.wait()
            return (await reader.read()).rstrip().endswith(b"data: [DONE]\n\n\r\n0")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read_late(), name=f"slow reader {place}") for place in range(count)]
        for _ in range(min(count, 4)):
            await begun.acquire()
        await asyncio.to_thread(meanwhile)
        may_read.set()
    return sum(task.result() for task in tasks)


async def leavers(target: Target, count: int, fields: Mapping[str, Any]) -> None:
    """Run ``count`` clients that disconnect in the middle of their stream,
    each a little later than the one before.
    """

    async def leave(place: int) -> None:
        async with target.connection() as (reader, writer):
            body = target.body(**fields)
            writer.write(head(len(body)) + body)
            await reader.readexactly(500 + 61 * (place % 40))

    async with asyncio.TaskGroup() as group:
        for place in range(count):
            group.create_task(leave(place), name=f"leaver {place}")


async def speakers_of_garbage(target: Target, count: int) -> None:
    """Open ``count`` connections that send invalid HTTP or invalid JSON, and read the replies."""

    async def speak(place: int) -> None:
        async with target.connection() as (reader, writer):
            with contextlib.suppress(ConnectionError):
                writer.write(GARBAGE[place % len(GARBAGE)])
                if writer.can_write_eof():
                    writer.write_eof()
                await reader.read()

    async with asyncio.TaskGroup() as group:
        for place in range(count):
            group.create_task(speak(place), name=f"garbage {place}")


async def large_body(target: Target, size: int) -> int:
    """Send a body of ``size`` bytes; return the status of the reply, 0 if the connection ended before."""
    async with target.connection() as (reader, writer):
        answer = asyncio.Task(reader.readline(), name="reply to a large body")
        writer.write(head(size))
        with contextlib.suppress(ConnectionError):
            for _ in range(size // READ_BYTES):
                writer.write(b" " * READ_BYTES)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            line = (await answer).split()
            return int(line[1]) if len(line) > 1 else 0
        return 0


async def header_flood(target: Target, lines: int) -> None:
    """Headers without end on one connection, until it is cut off."""
    async with target.connection() as (reader, writer):
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            for place in range(lines):
                writer.write(b"X-%d: %b\r\n" % (place, b"y" * 1000))
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            await reader.read()


def answers(target: Target, streams: int, tokens: int) -> list[str]:
    """Return the texts of ``streams`` different concurrent requests, alternately greedy and sampled."""
    client = Client(str(target.address))

    def answer(place: int) -> str:
        messages = [{"role": "user", "content": f"Count to {place}"}]
        sampled = {"temperature": 1.2, "top_k": 40, "seed": place} if place % 2 else {"temperature": 0}
        pieces = client.stream_chat(
            messages, model=target.model, max_tokens=tokens, ignore_eos=True, **sampled
        )
        return "".join(piece.text for piece in pieces)

    with ThreadPoolExecutor(streams) as pool:
        return list(pool.map(answer, range(streams)))


class EngineKiller:
    """Kills the engine with SIGKILL at most every ``every_s`` seconds,
    once it has generated ``tokens`` tokens.
    """

    def __init__(self, target: Target, every_s: float, tokens: int) -> None:
        self.kills = 0
        self._client = Client(str(target.address))
        self._every_s = every_s
        self._tokens = tokens
        self._dead = 0

    def run(self, ends: Callable[[], bool]) -> None:
        """Kill until ``ends`` says so."""
        while not ends():
            time.sleep(self._every_s)
            row = self._client.ps()[0]
            report, pid = row["report"], row["engine_pid"]
            if report and pid and pid != self._dead and report["output_tokens"] >= self._tokens:
                self._dead = pid
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.kills += 1
