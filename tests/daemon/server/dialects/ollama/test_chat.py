from __future__ import annotations

from typing import Any

import pytest

from tests.serving.http import chat, send
from tests.serving.ndjson import ask_chat
from tests.serving.running import MODEL, RunningDaemon


def test_answer_has_every_field_that_clients_read(daemon: RunningDaemon) -> None:
    body = ask_chat(daemon).json
    assert body["model"] == MODEL
    assert body["created_at"].endswith("Z")
    assert body["message"]["role"] == "assistant"
    assert (body["done"], body["done_reason"], body["eval_count"]) == (True, "length", 8)
    openai = chat(daemon).json
    assert body["message"]["content"] == openai["choices"][0]["message"]["content"]
    assert body["prompt_eval_count"] == openai["usage"]["prompt_tokens"]


def test_num_ctx_is_a_limit_of_the_request(daemon: RunningDaemon) -> None:
    counted = ask_chat(daemon).json["prompt_eval_count"]
    body = ask_chat(daemon, options={"num_ctx": counted + 3, "num_predict": -1}).json
    assert (body["eval_count"], body["done_reason"]) == (3, "length")
    reply = ask_chat(daemon, options={"num_ctx": counted})
    assert reply.status == 400
    assert f"num_ctx allows {counted}" in reply.json["error"]


def test_same_seed_gives_the_same_answer(daemon: RunningDaemon) -> None:
    options = {"temperature": 1.5, "top_p": 1, "top_k": 0, "num_predict": 20}
    first, again, other = (
        ask_chat(daemon, options={**options, "seed": seed}).json["message"]["content"] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_answer_that_the_client_began_is_continued(daemon: RunningDaemon) -> None:
    whole = ask_chat(daemon).json["message"]["content"]
    begun = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": whole[:3]}]
    body = ask_chat(daemon, messages=begun, options={"num_predict": 2}).json
    assert whole.startswith(whole[:3] + body["message"]["content"])


def test_oldest_messages_go_where_the_request_allows_it(daemon: RunningDaemon) -> None:
    turns = [{"role": "user", "content": str(i) * 200} for i in range(1, 4)]
    messages = [{"role": "system", "content": "Be brief."}, *turns]
    assert ask_chat(daemon, messages=messages).status == 400
    body = ask_chat(daemon, messages=messages, truncate=True).json
    kept = ask_chat(daemon, messages=[messages[0], *turns[1:]]).json
    assert body["prompt_eval_count"] == kept["prompt_eval_count"]
    assert body["message"] == kept["message"]
    assert body["llmd"]["truncated_tokens"] > 200


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"messages": [{"role": "user", "content": "a", "images": ["aGVsbG8="]}]}, "images"),
        ({"messages": [{"role": "nobody", "content": "a"}]}, "role"),
        ({"messages": "Hello"}, "messages"),
        ({"tools": {"name": "f"}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"think": True}, "does not support thinking"),
        ({"format": "xml"}, "format"),
        ({"options": 5}, "options"),
        ({"keep_alive": "soon"}, "keep_alive"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(
    daemon: RunningDaemon, fields: dict[str, Any], word: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "a"}], **fields}
    reply = send(daemon, "POST", "/api/chat", body)
    assert reply.status == 400
    assert word in reply.json["error"]
