"""Messages without content, in the error shape of each API."""

from __future__ import annotations

from typing import Any

import anthropic
import ollama
import openai
import pytest

from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon

NOTHING: Any = {"role": "user"}
MISSPELT: Any = {"role": "user", "contnet": "Hello"}
HINT = "its key 'contnet' is unknown; did you mean 'content'?"


def test_chat_refuses_them(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\] has no content") as nothing:
        client.chat.completions.create(model=MODEL, messages=[NOTHING])
    assert (nothing.value.param, nothing.value.type) == ("messages[0].content", "invalid_request_error")
    with pytest.raises(openai.BadRequestError) as misspelt:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "a"}, MISSPELT])
    assert "messages[1] has no content" in misspelt.value.message
    assert HINT in misspelt.value.message


def test_responses_refuses_them(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"input\[0\]\.content must be a text") as nothing:
        client.responses.create(model=MODEL, input=[NOTHING])
    assert nothing.value.param == "input[0].content"
    with pytest.raises(openai.BadRequestError) as misspelt:
        client.responses.create(model=MODEL, input=[MISSPELT])
    assert HINT in misspelt.value.message


def test_anthropics_messages_refuses_them(daemon: RunningDaemon) -> None:
    with anthropic.Anthropic(base_url=daemon.url, api_key="none", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.content must be a string"):
            client.messages.create(model=MODEL, max_tokens=4, messages=[NOTHING])
        with pytest.raises(anthropic.BadRequestError) as misspelt:
            client.messages.create(model=MODEL, max_tokens=4, messages=[MISSPELT])
    assert misspelt.value.type == "invalid_request_error"
    assert HINT in misspelt.value.message


@pytest.mark.parametrize("path", ["/api/chat", "/apply-template", "/tokenize"])
def test_ollama_and_llama_cpp_refuse_them(path: str, daemon: RunningDaemon) -> None:
    replies = [send(daemon, "POST", path, {"model": MODEL, "messages": [one]}) for one in (NOTHING, MISSPELT)]
    assert [reply.status for reply in replies] == [400, 400]
    errors = [reply.json["error"] for reply in replies]
    texts = errors if path == "/api/chat" else [error["message"] for error in errors]
    assert texts[0].startswith("messages[0] has no content")
    assert HINT in texts[1]


def test_ollamas_client_raises_the_text(daemon: RunningDaemon) -> None:
    with (
        ollama.Client(host=daemon.url) as client,
        pytest.raises(ollama.ResponseError, match=r"messages\[0\] has no content") as refused,
    ):
        client.chat(MODEL, messages=[NOTHING])
    assert refused.value.status_code == 400


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
def test_unknown_keys_next_to_content_are_ignored_and_named(path: str, daemon: RunningDaemon) -> None:
    messages = [{"role": "user", "content": "Hello", "name": "ann", "odd": 1}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 2, "options": {"num_predict": 2}}
    reply = send(daemon, "POST", path, {**body, "stream": False})
    assert reply.status == 200
    assert "messages%5B0%5D.odd" in reply.headers["x-llmd-ignored"].split(", ")
