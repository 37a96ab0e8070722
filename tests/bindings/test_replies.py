"""What a server sends is read in any portions, and nothing that it sends crashes the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bindings.building import Probe, Step
from tests.bindings.scripted_server import Portions, chunked, events, http, scripted

OK, CANCELLED, UNREACHABLE, TIMED_OUT, DENIED, NOT_FOUND = 0, 1, 5, 6, 7, 8
REJECTED, BUSY, FAILED, BAD_REPLY = 9, 10, 11, 12
WORDS = ("Grüße ", '👋 "x"\\\n', "你好", "\u2028€")
CALL = '{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}'


def chunk(**choice: Any) -> str:
    return json.dumps({"choices": [{"index": 0, **choice}]}, ensure_ascii=False)


STREAM = (
    chunk(delta={"role": "assistant", "content": ""}, finish_reason=None),
    chunk(delta={"reasoning": "hm — ", "reasoning_content": "hm — "}),
    *(chunk(delta={"content": word}) for word in WORDS),
    # The same in escapes: a pair, half a pair, and characters with short forms.
    r'{"choices":[{"delta":{"content":"\ud83d\udc4b \ud83d \u00e9\/\b\f\r\t"}}]}',
    '{"choices":[{"delta":{"tool_calls":[' + CALL + "]}}]}",
    chunk(delta={}, finish_reason="tool_calls"),
    '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":11}}',
)
ANSWER = "".join(WORDS) + "👋 � é/\b\f\r\t"


SHORT = (
    r'{"choices":[{"delta":{"content":"é👋\ud83d\udc4b\u00e9"}}]}',
    '{"choices":[{"finish_reason":"stop"}]}',
)


def chats(probe: Probe, folder: Path, *replies: Portions, **how: bool) -> list[Step]:
    """What each chat says that gets one of the replies."""
    with scripted(folder, *replies, **how) as server:
        calls = ("set", "address", server.address, "connect", "new", *["chat"] * len(replies))
        return probe.run(*calls)[-len(replies) :]


def chat(probe: Probe, folder: Path, *portions: bytes, **how: bool) -> Step:
    (step,) = chats(probe, folder, portions, **how)
    return step


def test_every_kind_of_piece_is_read(probe: Probe, tmp_path: Path) -> None:
    step = chat(probe, tmp_path, events(*STREAM))
    assert (step["status"], step["answer"], step["reasoning"]) == (OK, ANSWER, "hm — ")
    assert [kind for kind, _ in step["pieces"]] == [2, 1, 1, 1, 1, 1, 3, 4, 5]
    assert step["pieces"][6][1] == CALL
    assert (step["finish"], step["prompt_tokens"], step["answer_tokens"]) == ("tool_calls", 7, 11)


def test_a_reply_may_be_split_anywhere(probe: Probe, tmp_path: Path) -> None:
    reply = events(*SHORT)
    splits = [(reply[:place], reply[place:]) for place in range(1, len(reply))]
    steps = chats(probe, tmp_path, *splits)
    assert len(steps) > 200
    assert len({json.dumps(step) for step in steps}) == 1
    assert (steps[0]["answer"], steps[0]["finish"]) == ("é👋👋é", "stop")


def test_a_reply_may_come_byte_by_byte(probe: Probe, tmp_path: Path) -> None:
    reply = events(*SHORT)
    assert chat(probe, tmp_path, *(reply[i : i + 1] for i in range(len(reply))))["answer"] == "é👋👋é"


BODY = "".join(f"data: {one}\n\n" for one in (*STREAM, "[DONE]")).encode()


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\n" + BODY, id="until the connection ends"),
        pytest.param(b"HTTP/1.1 200\n" + b"content-length: %d\n\n" % len(BODY) + BODY, id="lines without CR"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + http(BODY), id="after an interim reply"),
        pytest.param(http(BODY.replace(b"\n", b"\r\n")), id="events with CR LF"),
        pytest.param(http(BODY.replace(b"\n", b"\r")), id="events with CR"),
        pytest.param(http(BODY.replace(b"data: ", b": ping\nid: 1\nevent: x\ndata:")), id="other fields"),
        pytest.param(http(BODY.replace(b'"choices"', b'\ndata: "choices"')), id="data of several lines"),
        pytest.param(chunked(*(bytes([byte]) for byte in BODY)), id="chunks of a byte"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"%X;name=value\r\n%s\r\n00\r\ntrailer: x\r\n\r\n" % (len(BODY), BODY),
            id="extension and trailer",
        ),
    ],
)
def test_every_form_of_http_is_read(reply: bytes, probe: Probe, tmp_path: Path) -> None:
    step = chat(probe, tmp_path, reply)
    assert (step["status"], step["answer"]) == (OK, ANSWER), step


@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [
        (b"", UNREACHABLE, "closed the connection too early"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", UNREACHABLE, "too early"),
        (http(BODY)[:-1], UNREACHABLE, "too early"),
        (events(*STREAM)[:200], UNREACHABLE, "too early"),
        (events(*STREAM, end=False), BAD_REPLY, "a stream without its end"),
        (b"SSH-2.0-OpenSSH_9\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/2 200 OK\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 20", UNREACHABLE, "too early"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9999, BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: y\r\n continued\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: \0\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20000 + b"\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20000 + b"\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", BAD_REPLY, "malformed HTTP"),
        (chunked(b"x").replace(b"\r\n1\r\n", b"\r\n-1\r\n"), BAD_REPLY, "malformed HTTP"),
        (chunked(b"x").replace(b"\r\n1\r\n", b"\r\n\r\n"), BAD_REPLY, "malformed HTTP"),
        (chunked(b"x").replace(b"\r\n1\r\n", b"\r\n" + b"f" * 16 + b"\r\n"), BAD_REPLY, "malformed HTTP"),
        (chunked(b"x").replace(b"x\r\n", b"xx\r\n"), BAD_REPLY, "malformed HTTP"),
        (http(b"<html>"), BAD_REPLY, "a stream without its end"),
        (http(b"<html>", "404 Not Found"), BAD_REPLY, "it replied with HTTP status 404"),
        (http(b"", "204 No Content"), BAD_REPLY, "HTTP status 204"),
        (http(b"x" * (2 << 20), "500 Error"), BAD_REPLY, "HTTP status 500"),
        (events("{"), BAD_REPLY, "malformed JSON"),
        (events("[" * 65 + "]" * 65), BAD_REPLY, "malformed JSON"),
        (events("[" * 64 + "]" * 64), BAD_REPLY, "an event without choices"),
        (events("[" * 100000), BAD_REPLY, "malformed JSON"),
        (events('{"choices":[{"delta":{"content":"\\ud8"}}]}'), BAD_REPLY, "malformed JSON"),
        (chunked(b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n'), BAD_REPLY, "malformed JSON"),
        (events("{}"), BAD_REPLY, "an event without choices"),
        (events('{"choices":{}}'), BAD_REPLY, "an event without choices"),
        (events('{"choices":[7]}'), BAD_REPLY, "a choice that is no object"),
        (events('{"choices":[{"delta":7,"finish_reason":{}}],"usage":[]}'), OK, ""),
        (events('{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":99999999999999999999999}}'), OK, ""),
        (events('{"error":{"message":"it broke","type":"server_error"}}'), FAILED, "it broke"),
        (events('{"error":{"type":"server_error"}}'), BAD_REPLY, "an error without a message"),
        (events('{"error":{"message":7}}'), BAD_REPLY, "an error without a message"),
        (events('{"error":{"message":""}}'), BAD_REPLY, "an error without a message"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_an_error(
    reply: bytes, status: int, message: str, probe: Probe, tmp_path: Path
) -> None:
    step = chat(probe, tmp_path, reply)
    assert step["status"] == status, step
    assert message in step["message"]


@pytest.mark.parametrize(
    ("http_status", "kind", "code", "status"),
    [
        ("400 Bad", "invalid_request_error", "invalid_value", REJECTED),
        ("401 No", "authentication_error", "missing_api_key", DENIED),
        ("403 No", "permission_error", "local_only", DENIED),
        ("404 No", "not_found_error", "model_not_found", NOT_FOUND),
        ("408 Late", "timeout_error", "deadline_exceeded", TIMED_OUT),
        ("429 Later", "rate_limit_error", "queue_full", BUSY),
        ("499 No", "cancelled_error", "request_cancelled", CANCELLED),
        ("503 Later", "unavailable_error", "loading", BUSY),
        ("503 No", "unavailable_error", "model_failed", FAILED),
        ("503 No", "unavailable_error", "out_of_memory", FAILED),
        ("500 No", "server_error", "internal_error", FAILED),
        ("500 No", "never_seen", None, FAILED),
    ],
)
def test_errors_of_the_daemon_have_a_status(
    http_status: str, kind: str, code: str | None, status: int, probe: Probe, tmp_path: Path
) -> None:
    error = {"error": {"message": "Bücher \U0001f4da", "type": kind, "param": None, "code": code}}
    step = chat(probe, tmp_path, http(json.dumps(error).encode(), http_status))
    assert (step["status"], step["message"]) == (status, "Bücher 📚")


def test_a_long_message_is_cut_between_characters(probe: Probe, tmp_path: Path) -> None:
    error = {"error": {"message": "é" * 5000, "type": "server_error"}}
    step = chat(probe, tmp_path, http(json.dumps(error).encode(), "500 No"))
    assert 500 < len(step["message"]) < 512
    assert set(step["message"]) == {"é"}


def test_a_request_that_is_refused_before_it_was_read_says_why(probe: Probe, tmp_path: Path) -> None:
    """The daemon closes the connection while the library still sends."""
    error = {"error": {"message": "too large", "type": "invalid_request_error"}}
    reply = [http(json.dumps(error).encode(), "413 Too Large")]
    many = ("message", "user", "x" * 100_000) * 10
    with scripted(tmp_path, [], reply, reads=False) as server:
        step = probe.ask(server.address, *many, "chat")
    assert (step["status"], step["message"]) == (REJECTED, "too large")


def test_a_silent_daemon_ends_the_call(probe: Probe, tmp_path: Path) -> None:
    with scripted(tmp_path, [events(*STREAM)[:300]], keep_open=True) as server:
        step = probe.last(
            "set", "address", server.address, "set", "silence_timeout_ms", "80", "connect", "new", "chat"
        )
    assert (step["status"], step["hint"]) == (TIMED_OUT, "raise the option silence_timeout_ms")
    assert "was silent for 80 ms" in step["message"]


def test_a_cancel_ends_the_wait_for_a_silent_daemon(probe: Probe, tmp_path: Path) -> None:
    first = events(*STREAM, end=False)[:-5]
    with scripted(tmp_path, [first], keep_open=True) as server:
        step = probe.ask(server.address, "cancel-after", "9", "chat")
    assert (step["status"], len(step["pieces"])) == (CANCELLED, 9)


def test_requests_say_what_they_want(probe: Probe, tmp_path: Path) -> None:
    with scripted(tmp_path, [events(*STREAM)]) as server:
        options = ("option", "temperature", "0.50", "option", "stop", 'a"', "option", "stop", "b")
        probe.last(
            "set", "address", server.address, "set", "api_key", "secret", "connect", "new", *options,
            "option", "extra_body", ' { "logprobs" : true } ', "message", "user", "Hi", "chat",
        )  # fmt: skip
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: llmd\r\n")
    assert b"\r\nAuthorization: Bearer secret" in head
    assert json.loads(body) == {
        "logprobs": True,
        "temperature": 0.5,
        "stop": ['a"', "b"],
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


FLOATS = "AACAPwAAAEA="  # 1, 2


def rows(*texts: str) -> bytes:
    return json.dumps({"data": [{"embedding": text} for text in texts]}).encode()


@pytest.mark.parametrize(
    ("body", "vectors"),
    [
        (rows(FLOATS, FLOATS), [[1, 2], [1, 2]]),
        (rows("AACAPwAAAEAAAEBA", "AACAPwAAAEAAAEBA"), [[1, 2, 3], [1, 2, 3]]),
        (rows("AACAPw==", "AACAPw=="), [[1], [1]]),
        (rows(FLOATS), None),
        (rows(FLOATS, FLOATS, FLOATS), None),
        (rows(FLOATS, "AACAPw=="), None),
        (rows("", ""), None),
        (rows("AAA=", "AAA="), None),
        (rows("AACAPwAAAE*=", FLOATS), None),
        (rows("AACA=wAAAEA=", FLOATS), None),
        (rows("=", "="), None),
        (rows("====", "===="), None),
        (b'{"data":[{"embedding":[1,2]}]}', None),
        (b'{"data":{}}', None),
        (b"[]", None),
        (b"", None),
        (rows(FLOATS, FLOATS)[:-1], None),
    ],
)
def test_vectors_are_whole_or_an_error(
    body: bytes, vectors: list[list[float]] | None, probe: Probe, tmp_path: Path
) -> None:
    with scripted(tmp_path, [http(body)]) as server:
        step = probe.ask(server.address, "embed", "a|b")
    assert (step["status"], step["vectors"]) == ((BAD_REPLY, []) if vectors is None else (OK, vectors))


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"tokens":[0,7,2147483647]}', [0, 7, 2147483647]),
        (b' {"a":{"tokens":[1]},"tokens" : [ 5 , 6 ] } ', [5, 6]),
        (b'{"tokens":[]}', []),
        (b'{"tokens":[2147483648]}', None),
        (b'{"tokens":[1,-1]}', None),
        (b'{"tokens":[1.5]}', None),
        (b'{"tokens":[1,]}', None),
        (b'{"tokens":[01]}', None),
        (b'{"tokens":{}}', None),
        (b'{"tokens":[1]} x', None),
        (b"7", None),
    ],
)
def test_tokens_are_whole_or_an_error(
    body: bytes, tokens: list[int] | None, probe: Probe, tmp_path: Path
) -> None:
    with scripted(tmp_path, [http(body)]) as server:
        step = probe.ask(server.address, "tokenize", "a")
    assert (step["status"], step["tokens"]) == ((BAD_REPLY, []) if tokens is None else (OK, tokens))


@pytest.mark.parametrize("body", [b"{}", b'{"data":[{}]}', b'{"data":[{"id":7}]}', b'{"data":7}', b"nil"])
def test_lists_of_models_are_whole_or_an_error(body: bytes, probe: Probe, tmp_path: Path) -> None:
    with scripted(tmp_path, [http(body)]) as server:
        step = probe.last("set", "address", server.address, "connect", "models")
    assert (step["status"], step["models"]) == (BAD_REPLY, [])
