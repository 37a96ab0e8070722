"""While a model loads, a terminal shows the progress; the line is removed afterwards."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from llmd.cli.loading_progress import LoadingProgress, loading_line, with_loading_progress
from llmd.client import Answer, Client
from llmd.config import Directories, load_settings
from tests.serving.home import LLMD, Home
from tests.serving.running import directories_below
from tests.serving.terminal import Screen, terminal

MODEL: dict[str, Any] = {"name": "tiny", "status": "loading", "error": None, "waits_for": [], "loading": None}
HALF = MODEL | {"loading": {"phase": "layers 0-3 on cpu", "done": 21, "total": 50}}
CHUNK = {"choices": [{"delta": {"content": "hello"}, "finish_reason": "stop"}]}


@contextmanager
def loading_daemon(asked: Callable[[], list[dict[str, Any]]], loaded: threading.Event) -> Iterator[str]:
    """Run a server that lists the models of ``asked`` and answers after ``loaded``; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(json.dumps({"models": asked()}).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            loaded.wait()
            self._reply(f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode())

        def _reply(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="loading daemon")
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            loaded.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def directories(tmp_path: Any) -> Directories:
    return directories_below(tmp_path)


def test_says_what_is_loaded_and_how_far_that_is() -> None:
    assert loading_line([HALF, {"name": "b", "status": "loaded"}]) == "loading tiny 42 %: layers 0-3 on cpu"
    waiting = MODEL | {"waits_for": ["b"]}
    assert loading_line([MODEL, waiting]) == "loading tiny, loading tiny: waiting for the memory of b"
    assert loading_line([]) == ""


def test_the_line_is_gone_before_the_answer(home: Home) -> None:
    """The model is loaded at the second status request: by then the first line is shown."""
    loaded = threading.Event()
    replies = iter([[HALF], [HALF]])

    def asked() -> list[dict[str, Any]]:
        reply = next(replies, None)
        if reply is None:
            loaded.set()
        return reply or [HALF]

    with (
        loading_daemon(asked, loaded) as host,
        terminal([*LLMD, "run", "tiny", "hi", "--host", host], home.environment, term="xterm") as screen,
    ):
        assert screen.end() == 0
    assert "\rloading tiny 42 %: layers 0-3 on cpu\x1b[K" in screen.shown
    assert screen.shown.endswith("\r\x1b[Khello\r\n")


def test_nothing_is_asked_or_shown_where_no_terminal_is(
    directories: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client("127.0.0.1:1", settings=load_settings(environ={}, directories=directories))
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    assert list(with_loading_progress(client, iter([Answer("a")]))) == [Answer("a")]
    assert pipe.getvalue() == ""


def test_a_daemon_that_does_not_tell_is_not_asked_again(directories: Directories) -> None:
    client = Client("127.0.0.1:1", settings=load_settings(environ={}, directories=directories))
    screen = Screen()
    with LoadingProgress(client, screen, every_s=0) as progress:
        progress._watcher.join()
    assert screen.getvalue() == ""


def test_a_line_that_comes_late_is_not_shown(directories: Directories) -> None:
    """The answer starts during a status request."""
    loaded, may_reply, was_asked = threading.Event(), threading.Event(), threading.Event()

    def asked() -> list[dict[str, Any]]:
        was_asked.set()
        may_reply.wait()
        return [HALF]

    screen = Screen()
    with loading_daemon(asked, loaded) as host:
        client = Client(host, settings=load_settings(environ={}, directories=directories))
        with LoadingProgress(client, screen, every_s=0) as progress:
            was_asked.wait()
            progress.hide()
            may_reply.set()
    assert screen.getvalue() == ""
