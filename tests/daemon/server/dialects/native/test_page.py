from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from llmd.client_connection import connected
from llmd.server.page.page_files import START, page_files
from llmd.server.page.page_headers import HEADERS
from tests.serving.http import LIMIT_S, send
from tests.serving.running import RunningDaemon, directories_below, running_daemon

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("accept", [None, "*/*", "application/json"])
def test_root_says_what_some_clients_look_for(daemon: RunningDaemon, method: str, accept: str | None) -> None:
    reply = send(daemon, method, "/", headers={} if accept is None else {"Accept": accept})
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/plain")
    assert reply.content == (b"Ollama is running" if method == "GET" else b"")
    assert reply.headers["Vary"] == "Accept"


def test_browsers_get_the_page(daemon: RunningDaemon) -> None:
    reply = send(daemon, "GET", "/", headers=BROWSER)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert reply.content == page_files()[START].content
    assert reply.headers["Vary"] == "Accept"
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("name", page_files())
def test_every_file_is_served_with_its_type_and_tag(daemon: RunningDaemon, name: str) -> None:
    file = page_files()[name]
    reply = send(daemon, "GET", f"/page/{name}")
    assert (reply.status, reply.content) == (200, file.content)
    assert (reply.headers["Content-Type"], reply.headers["ETag"]) == (file.type, file.etag)
    assert {header: reply.headers[header] for header in HEADERS} == HEADERS


@pytest.mark.parametrize("path", ["/", "/page/main.js"])
def test_head_has_the_headers_alone(daemon: RunningDaemon, path: str) -> None:
    whole, head = (send(daemon, method, path, headers=BROWSER) for method in ("GET", "HEAD"))
    assert head.content == b""
    for name in ("Content-Type", "Content-Length", "ETag", "Content-Security-Policy"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize("path", ["/", "/page/main.js"])
def test_a_file_that_the_browser_has_is_not_sent_again(daemon: RunningDaemon, path: str) -> None:
    tag = send(daemon, "GET", path, headers=BROWSER).headers["ETag"]
    again = send(daemon, "GET", path, headers=BROWSER | {"If-None-Match": tag})
    assert (again.status, again.content, again.headers["ETag"]) == (304, b"", tag)
    other = send(daemon, "GET", path, headers=BROWSER | {"If-None-Match": '"other"'})
    assert other.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page/none.js",
        "/page/__init__.py",
        "/page/page_files.py",
        "/page/../page_files.py",
        "/page/..%2fpage_files.py",
        "/page/%2e%2e/page_files.py",
        "/page/files/index.html",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/main.js%00",
        "/page/main.js/",
    ],
)
def test_nothing_else_is_reachable(daemon: RunningDaemon, path: str) -> None:
    assert raw_status(daemon, path) in {400, 404}


def raw_status(daemon: RunningDaemon, path: str) -> int:
    """Send a path exactly as it is."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected(daemon.tcp)
    connection.sock.settimeout(LIMIT_S)
    connection.putrequest("GET", path, skip_accept_encoding=True)
    connection.endheaders()
    with connection.getresponse() as reply:
        reply.read()
    connection.close()
    return reply.status


def test_the_page_needs_no_key_and_shows_nothing_that_does(tmp_path: Path) -> None:
    with running_daemon(directories_below(tmp_path), models=(), require_key=True) as locked:
        assert send(locked, "GET", "/", headers=BROWSER).status == 200
        assert send(locked, "GET", "/page/main.js").status == 200
        for path in ("/v1/models", "/llmd/events", "/llmd/devices", "/openapi.json"):
            assert send(locked, "GET", path).status == 401


def test_other_pages_cannot_load_it(daemon: RunningDaemon) -> None:
    evil = {"Origin": "https://evil.example"}
    assert send(daemon, "GET", "/page/main.js", headers=evil).status == 403
