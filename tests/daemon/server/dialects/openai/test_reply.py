"""The order of a stream, and that streams and whole answers have the same content."""

from __future__ import annotations

from typing import Any

from tests.serving.http import chat, complete
from tests.serving.running import RunningDaemon


def deltas(chunks: list[dict[str, Any]], index: int = 0) -> list[dict[str, Any]]:
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return [choice for choice in choices if choice["index"] == index]


def test_stream_begins_with_the_role_and_ends_with_reason_usage_and_done(daemon: RunningDaemon) -> None:
    reply = chat(daemon, stream=True, stream_options={"include_usage": True})
    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-cache"
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert reply.lines[-1] == "data: [DONE]"
    first, *middle, last, usage = reply.chunks
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all(set(chunk["choices"][0]["delta"]) == {"content"} for chunk in middle)
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in (first, *middle))
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "length")
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 8
    assert all(chunk["usage"] is None for chunk in (first, *middle, last))


def test_all_chunks_share_what_names_the_answer(daemon: RunningDaemon) -> None:
    chunks = chat(daemon, stream=True).chunks
    for field in ("id", "object", "created", "model", "system_fingerprint"):
        assert len({chunk[field] for chunk in chunks}) == 1
    assert chunks[0]["object"] == "chat.completion.chunk"
    assert not any("usage" in chunk for chunk in chunks)


def test_streamed_text_is_that_of_the_whole_answer(daemon: RunningDaemon) -> None:
    fields = {"max_tokens": 40, "temperature": 1.0, "seed": 11, "n": 2}
    whole = chat(daemon, **fields).json
    chunks = chat(daemon, stream=True, **fields).chunks
    for index, choice in enumerate(whole["choices"]):
        pieces = [delta["delta"].get("content", "") for delta in deltas(chunks, index)]
        assert "".join(pieces) == choice["message"]["content"]
        assert deltas(chunks, index)[0]["delta"]["role"] == "assistant"
        assert deltas(chunks, index)[-1]["finish_reason"] == choice["finish_reason"]
        assert sum("role" in delta["delta"] for delta in deltas(chunks, index)) == 1


def test_token_ids_of_a_stream_are_those_of_the_whole_answer(daemon: RunningDaemon) -> None:
    whole = chat(daemon, return_token_ids=True, max_tokens=20).json
    chunks = chat(daemon, return_token_ids=True, max_tokens=20, stream=True).chunks
    assert chunks[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert [i for delta in deltas(chunks) for i in delta["token_ids"]] == whole["choices"][0]["token_ids"]


def test_usage_may_be_asked_for_with_every_chunk(daemon: RunningDaemon) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = complete(daemon, stream=True, stream_options=options).chunks
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[-1] == 8


def test_completions_stream_without_a_role(daemon: RunningDaemon) -> None:
    whole = complete(daemon).json
    reply = complete(daemon, stream=True)
    assert {chunk["object"] for chunk in reply.chunks} == {"text_completion"}
    assert "".join(delta["text"] for delta in deltas(reply.chunks)) == whole["choices"][0]["text"]
    assert deltas(reply.chunks)[-1]["finish_reason"] == "length"
    assert reply.lines[-1] == "data: [DONE]"


def test_stream_of_no_tokens_is_whole_too(daemon: RunningDaemon) -> None:
    chunks = chat(daemon, stream=True, max_tokens=0).chunks
    assert [delta["finish_reason"] for delta in deltas(chunks)] == [None, "length"]
