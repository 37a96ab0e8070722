"""The client waits for the port, retries while a server loads, and reports unexpected responses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.checkpoint import write_checkpoint
from bench.first_token import launched
from bench.servers import free_port
from bench.shapes import Shape
from bench.start_sides import Llmd, Prompts

LOADING = """
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    left = int(sys.argv[2])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 503 if Handler.left else int(sys.argv[3])
        Handler.left = max(0, Handler.left - 1)
        body = json.dumps(asked).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def loading(port: int, refusals: int, status: int = 200) -> list[str]:
    """Return the command of a server that answers ``refusals`` requests with 503, then with ``status``."""
    return [sys.executable, "-c", LOADING, str(port), str(refusals), str(status)]


def test_a_server_that_is_still_loading_is_asked_again() -> None:
    port = free_port()
    with launched(loading(port, refusals=3), port, {}) as server:
        listening_s = server.listening_s()
        assert 0 < listening_s < server.first_token_s([1, 2])
        assert server.post("/v1/completions", {}) == 200


def test_what_a_server_answers_instead_of_a_token_is_told() -> None:
    port = free_port()
    with (
        launched(loading(port, refusals=0, status=404), port, {}) as server,
        pytest.raises(RuntimeError, match=r'/v1/completions with 404: .*"max_tokens": 1'),
    ):
        server.first_token_s([1, 2])


def test_a_server_that_ends_is_told() -> None:
    port = free_port()
    with (
        launched([sys.executable, "-c", "raise SystemExit(3)"], port, {}) as server,
        pytest.raises(RuntimeError, match="ended with 3 before it answered"),
    ):
        server.first_token_s([1, 2])


def test_the_processor_time_of_a_daemon_that_has_ended_is_still_its_own(tmp_path: Path) -> None:
    shape = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)
    model = write_checkpoint(shape, tmp_path / "tiny")
    before_s = sum(os.times()[2:4])  # of ended children
    with Llmd(model, None, tmp_path, 1).launch() as daemon:
        daemon.first_token_s(Prompts().draw())
        used_s = daemon.cpu_s()
    assert sum(os.times()[2:4]) - before_s >= used_s > 0
