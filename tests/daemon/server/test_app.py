"""Rules for every request of every dialect."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from llmd.server.http.guards import Peer
from tests.serving.http import Reply, chat, send
from tests.serving.running import MODEL, RunningDaemon

CHAT = "/v1/chat/completions"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}


def post(daemon: RunningDaemon, headers: dict[str, str], **options: Any) -> Reply:
    return send(daemon, "POST", CHAT, BODY, headers, **options)


def test_request_ids_are_echoed_or_made(daemon: RunningDaemon) -> None:
    echoed = post(daemon, {"x-request-id": "mine-1"})
    assert (echoed.headers["x-request-id"], echoed.headers["request-id"]) == ("mine-1", "mine-1")
    made = [post(daemon, {}).headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]
    assert post(daemon, {"x-request-id": "x" * 1000}).headers["x-request-id"].startswith("req_")


def records_of(
    caplog: pytest.LogCaptureFixture, daemon: RunningDaemon, request_id: str
) -> list[dict[str, object]]:
    """Return the log records of a request. A stream is logged after its last byte, so wait for it."""
    for _ in range(200):
        found = [vars(record) for record in caplog.records if vars(record).get("request_id") == request_id]
        if found:
            return found
        send(daemon, "GET", "/health")
    return []


@pytest.mark.parametrize("stream", [False, True])
def test_each_request_is_logged_with_its_id_and_never_its_text(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    caplog.set_level("INFO")
    body = {**BODY, "messages": [{"role": "user", "content": "secret"}], "stream": stream}
    send(daemon, "POST", CHAT, body, {"x-request-id": "mine-2"})
    (record,) = records_of(caplog, daemon, "mine-2")
    assert (record["path"], record["status"]) == (CHAT, 200)
    assert not any("secret" in str(vars(record)) for record in caplog.records)


def test_what_an_interface_only_looks_at_is_not_logged(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    interface = {"x-llmd-interface": "tui"}
    count = f"{CHAT}/input_tokens"
    send(daemon, "GET", "/v1/models", None, {**interface, "x-request-id": "look-1"})
    send(daemon, "POST", count, BODY, {**interface, "x-request-id": "look-2"})
    send(daemon, "GET", "/v1/models/none", None, {**interface, "x-request-id": "refused"})
    send(daemon, "GET", "/v1/models", None, {"x-request-id": "other"})
    post(daemon, {**interface, "x-request-id": "asked"})
    assert records_of(caplog, daemon, "refused")
    assert records_of(caplog, daemon, "other")
    assert records_of(caplog, daemon, "asked")
    logged = {vars(record).get("request_id") for record in caplog.records}
    assert not logged & {"look-1", "look-2"}


def test_a_refused_request_is_logged_with_client_and_reason(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    send(daemon, "GET", "/v1/models", headers={"x-request-id": "mine-3", "Host": "evil.example"})
    (record,) = records_of(caplog, daemon, "mine-3")
    assert (record["status"], record["client"], record["key"]) == (403, "127.0.0.1", None)
    assert record["error"] == "host_not_allowed"
    send(daemon, "GET", "/v1/models", headers={"x-request-id": "mine-4"}, unix=True)
    (record,) = records_of(caplog, daemon, "mine-4")
    assert (record["client"], record["error"]) == ("unix", None)


@pytest.mark.parametrize("stream", [False, True])
def test_replies_say_who_answers_and_how_long_it_took(daemon: RunningDaemon, *, stream: bool) -> None:
    headers = send(daemon, "POST", CHAT, {**BODY, "stream": stream}).headers
    assert headers["server"] == f"llmd/{daemon.serving.version}"
    assert int(headers["openai-processing-ms"]) >= 0


def test_headers_of_real_clients_are_tolerated(daemon: RunningDaemon) -> None:
    headers = {
        "Authorization": "Bearer sk-no-key-required",
        "x-api-key": "ollama",
        "x-stainless-os": "Linux",
        "openai-beta": "x",
        "traceparent": "00-1-2-01",
        "idempotency-key": "1",
    }
    assert post(daemon, headers).status == 200
    assert send(daemon, "POST", f"{CHAT}?beta=true", BODY).status == 200


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_body_is_json_whatever_its_type_says(daemon: RunningDaemon, content_type: str) -> None:
    assert post(daemon, {"Content-Type": content_type}).status == 200


def test_compressed_bodies_are_read(daemon: RunningDaemon) -> None:
    body = gzip.compress(json.dumps(BODY).encode())
    assert send(daemon, "POST", CHAT, body, {"Content-Encoding": "gzip"}).status == 200


def test_body_over_the_limit_is_refused(daemon: RunningDaemon) -> None:
    reply = send(daemon, "POST", CHAT, {**BODY, "user": "x" * 200_000})
    assert (reply.status, reply.error["code"]) == (413, "request_too_large")


def test_body_that_is_no_json_is_refused(daemon: RunningDaemon) -> None:
    reply = send(daemon, "POST", CHAT, b"{'model'")
    assert (reply.status, reply.error["code"]) == (400, "invalid_json")


def test_unknown_paths_and_methods_are_errors_in_json(daemon: RunningDaemon) -> None:
    unknown = send(daemon, "GET", "/v1/nothing")
    assert (unknown.status, unknown.error["code"]) == (404, "unknown_url")
    wrong = send(daemon, "GET", CHAT)
    assert (wrong.status, wrong.error["code"]) == (405, "method_not_allowed")
    assert wrong.headers["Allow"] == "OPTIONS, POST"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/a%0Ab", 404), ("OPTIONS", "*", 204), ("CONNECT", "localhost:80", 405)],
)
def test_every_path_goes_through_the_one_door(
    daemon: RunningDaemon, method: str, path: str, status: int
) -> None:
    reply = send(daemon, method, path)
    assert reply.status == status
    assert "x-request-id" in reply.headers
    assert status == 204 or reply.error["type"]


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_header_that_is_no_text_is_refused_as_any_other(daemon: RunningDaemon, header: str) -> None:
    reply = post(daemon, {header: "ev\xffil"})
    assert (reply.status, reply.error["type"]) == (403, "permission_error")


@pytest.mark.parametrize(
    "path", ["/chat/completions", f"{CHAT}/", "//v1//chat/completions", "/v1/v1/chat/completions"]
)
def test_paths_are_forgiven(daemon: RunningDaemon, path: str) -> None:
    assert send(daemon, "POST", path, BODY).status == 200


def test_head_is_get_without_a_body(daemon: RunningDaemon) -> None:
    reply = send(daemon, "HEAD", "/v1/models")
    assert (reply.status, reply.content) == (200, b"")
    assert send(daemon, "HEAD", "/").status == 200


def test_administration_answers_this_machine_alone_however_it_is_spelt(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("llmd.server.app.peer_of", lambda _request: Peer("192.0.2.1", "192.0.2.9"))
        patch.setattr(daemon.daemon._access, "_no_auth", True)
        for path in ("/llmd/ps", "//llmd/ps", "/llmd/ps/"):
            refused = send(daemon, "GET", path)
            assert (refused.status, refused.error["code"]) == (403, "local_only")
        assert send(daemon, "GET", "/v1/models").status == 200
    assert send(daemon, "GET", "/llmd/ps", unix=True).status == 200


def test_foreign_hosts_are_refused_on_tcp_and_ignored_on_the_socket(daemon: RunningDaemon) -> None:
    foreign = {"Host": "evil.example"}
    refused = post(daemon, foreign)
    assert (refused.status, refused.error["code"]) == (403, "host_not_allowed")
    assert post(daemon, foreign, unix=True).status == 200


@pytest.mark.parametrize("unix", [False, True])
def test_foreign_pages_are_refused_and_told_the_flag(daemon: RunningDaemon, *, unix: bool) -> None:
    reply = post(daemon, {"Origin": "https://evil.example"}, unix=unix)
    assert (reply.status, reply.error["code"]) == (403, "origin_not_allowed")
    assert "--allow-origin https://evil.example" in reply.error["message"]
    assert "Access-Control-Allow-Origin" not in reply.headers


@pytest.mark.parametrize("origin", ["http://localhost:3000", "app://obsidian.md", "vscode-webview://1k2j3h"])
def test_pages_and_apps_of_this_machine_may_ask_first_and_read_the_reply(
    daemon: RunningDaemon, origin: str
) -> None:
    first = send(
        daemon,
        "OPTIONS",
        CHAT,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-stainless-os",
            "Access-Control-Request-Private-Network": "true",
        },
    )
    assert first.status == 204
    assert "POST" in first.headers["Access-Control-Allow-Methods"]
    assert first.headers["Access-Control-Allow-Headers"] == "x-stainless-os"
    assert first.headers["Access-Control-Allow-Private-Network"] == "true"
    assert first.headers["Access-Control-Max-Age"] == "600"
    replies = [
        post(daemon, {"Origin": origin}),
        send(daemon, "POST", CHAT, {**BODY, "stream": True}, {"Origin": origin}),
        send(daemon, "POST", CHAT, {**BODY, "model": "missing"}, {"Origin": origin}),
    ]
    assert [reply.status for reply in replies] == [200, 200, 404]
    for reply in (first, *replies):
        assert reply.headers["Access-Control-Allow-Origin"] == origin
        assert reply.headers["Vary"] == "Origin"
        assert "x-request-id" in reply.headers["Access-Control-Expose-Headers"]
        assert "x-request-id" in reply.headers


def test_foreign_pages_that_ask_first_are_refused(daemon: RunningDaemon) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    reply = send(daemon, "OPTIONS", CHAT, headers=asked)
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("Access-Control-")]


def test_options_without_an_origin_names_the_methods(daemon: RunningDaemon) -> None:
    assert send(daemon, "OPTIONS", CHAT).headers["Allow"] == "OPTIONS, POST"


def test_handler_that_fails_is_an_error_and_the_daemon_goes_on(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("llmd.registry.store.Store.list", broken)
        reply = send(daemon, "GET", "/v1/models")
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    assert chat(daemon).status == 200


def test_handler_that_has_no_memory_says_so(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(_self: object) -> None:
        raise MemoryError

    monkeypatch.setattr("llmd.registry.store.Store.list", greedy)
    reply = send(daemon, "GET", "/v1/models")
    assert (reply.status, reply.error["code"]) == (503, "out_of_memory")
    assert "not enough memory" in reply.error["message"]
