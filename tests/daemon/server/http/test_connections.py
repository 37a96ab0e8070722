"""Connections over real sockets, with requests and replies as bytes."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.server.http.connections import MAX_LINE, descriptor_limit, raise_descriptor_limit
from tests.serving.http import LIMIT_S, open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@contextlib.contextmanager
def connection(daemon: RunningDaemon) -> Iterator[socket.socket]:
    with socket.create_connection((daemon.tcp.host, daemon.tcp.port), LIMIT_S) as opened:
        yield opened


def reply_of(opened: socket.socket) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the reply after which the connection ends."""
    received = b""
    while part := opened.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def prepared(daemon: RunningDaemon, sent: bytes) -> tuple[int, dict[str, Any]]:
    with connection(daemon) as opened:
        opened.sendall(sent)
        return reply_of(opened)


@pytest.fixture
def impatient(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon with short time limits."""
    options: dict[str, Any] = {
        "headers_timeout_s": 0.2,
        "body_timeout_s": 0.2,
        "idle_timeout_s": 0.4,
        "max_connections": 3,
    }
    with running_daemon(directories_below(tmp_path, probes), models=(), **options) as running:
        yield running


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00garbage\r\n\r\n", 400, "invalid_http"),
        (b"hello\r\n\r\n", 400, "invalid_http"),
        (b"GET / HTTP/9.9\r\n\r\n", 400, "invalid_http"),
        (GET + b"no colon\r\n\r\n", 400, "invalid_http"),
        (GET + b"Content-Length: many\r\n\r\n", 400, "invalid_http"),
        (b"GET /" + b"x" * 2 * MAX_LINE + b" HTTP/1.1\r\n\r\n", 431, "headers_too_large"),
        (GET + b"X: " + b"x" * 2 * MAX_LINE + b"\r\n\r\n", 431, "headers_too_large"),
        (GET + b"X: y\r\n" * 1000 + b"\r\n", 400, "invalid_http"),
    ],
)
def test_what_is_no_http_is_refused_in_json_and_the_daemon_goes_on(
    daemon: RunningDaemon, sent: bytes, status: int, code: str
) -> None:
    answered, body = prepared(daemon, sent)
    assert (answered, body["error"]["code"]) == (status, code)
    assert body["error"]["type"] == "invalid_request_error"
    assert len(body["error"]["message"]) < 400
    assert send(daemon, "GET", "/health").status == 200


def test_a_flood_of_headers_without_end_is_cut_off(daemon: RunningDaemon) -> None:
    with connection(daemon) as opened:
        with contextlib.suppress(ConnectionError):
            opened.sendall(GET)
            for _ in range(1000):
                opened.sendall(b"X-Header: " + b"y" * 1000 + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert reply_of(opened)[0] == 400
    assert send(daemon, "GET", "/health").status == 200


@pytest.mark.parametrize("sent", [b"GET /health HT", GET, b""])
def test_headers_that_do_not_come_in_time_end_the_connection(impatient: RunningDaemon, sent: bytes) -> None:
    status, body = prepared(impatient, sent)
    assert (status, body["error"]["code"]) == (408, "headers_too_slow")


def test_second_request_of_a_connection_must_come_in_time_too(impatient: RunningDaemon) -> None:
    with connection(impatient) as opened:
        opened.sendall(GET + b"\r\n")
        assert opened.recv(65536).startswith(b"HTTP/1.1 200")
        opened.sendall(b"GET /hea")
        assert reply_of(opened)[0] == 408


def test_connection_that_asks_nothing_more_is_closed(impatient: RunningDaemon) -> None:
    with connection(impatient) as opened:
        opened.sendall(GET + b"\r\n")
        assert opened.recv(65536).startswith(b"HTTP/1.1 200")
        assert opened.recv(65536) == b""


def test_body_that_does_not_come_in_time_is_a_408(impatient: RunningDaemon) -> None:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nConnection: close\r\n\r\n"
    status, body = prepared(impatient, head + b'{"model"')
    assert (status, body["error"]["code"]) == (408, "deadline_exceeded")
    assert "body_timeout_s" in body["error"]["message"]


def test_connections_beyond_the_limit_are_told_so(tmp_path: Path, probes: Path) -> None:
    with running_daemon(directories_below(tmp_path, probes), models=(), max_connections=3) as daemon:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(connection(daemon)) for _ in range(3)]
            for opened in held:
                opened.sendall(GET + b"\r\n")
                assert opened.recv(65536).startswith(b"HTTP/1.1 200")
            status, body = prepared(daemon, b"")
            assert (status, body["error"]["code"]) == (503, "overloaded")
        while True:
            with contextlib.suppress(ConnectionError):
                if send(daemon, "GET", "/health").status == 200:
                    return


def test_reader_that_takes_nothing_is_dropped_and_its_request_freed(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL, context_len=1 << 14)
    options: dict[str, Any] = {"write_timeout_s": 0.2, "buffer_tokens": 16}
    with running_daemon(directories, **options) as daemon:
        body = {"max_tokens": 1 << 14, "ignore_eos": True, "logprobs": True, "top_logprobs": 20}
        # A Unix socket buffers little unread data.
        with open_stream(daemon, body, unix=True):
            while any(row["users"] for row in send(daemon, "GET", "/llmd/ps").json["models"]):
                pass


def test_descriptors_are_raised_as_far_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raise_descriptor_limit(512)
        assert descriptor_limit() == 512
        raise_descriptor_limit(100)
        assert descriptor_limit() == 512
        raise_descriptor_limit(1 << 40)
        assert descriptor_limit() >= 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
