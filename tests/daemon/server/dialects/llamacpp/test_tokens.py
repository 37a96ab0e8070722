from __future__ import annotations

from typing import Any

import pytest

from tests.serving.http import Reply, chat, send
from tests.serving.model import BOS, CONTEXT_LEN, TURN_END, TURN_START
from tests.serving.running import MODEL, RunningDaemon

HELLO = [{"role": "user", "content": "Hello"}]


def tokenize(daemon: RunningDaemon, **fields: Any) -> Reply:
    return send(daemon, "POST", "/tokenize", {"model": MODEL, **fields})


def test_text_becomes_tokens_as_llama_cpp_has_it(daemon: RunningDaemon) -> None:
    assert tokenize(daemon, content="é<s>").json == {"tokens": [0xC3, 0xA9, BOS]}
    assert tokenize(daemon, content="<s>", parse_special=False).json == {"tokens": [*b"<s>"]}
    assert tokenize(daemon, content="").json == {"tokens": []}


def test_pieces_are_texts_or_the_bytes_of_half_characters(daemon: RunningDaemon) -> None:
    assert tokenize(daemon, content="aé", with_pieces=True).json["tokens"] == [
        {"id": 97, "piece": "a"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
    ]


def test_prompt_and_messages_are_answered_as_vllm_does(daemon: RunningDaemon) -> None:
    body = tokenize(daemon, prompt="Hello").json
    assert body == {"count": 5, "max_model_len": CONTEXT_LEN, "tokens": [*b"Hello"], "token_strs": None}
    assert tokenize(daemon, prompt="ab", return_token_strs=True).json["token_strs"] == ["a", "b"]
    counted = tokenize(daemon, messages=HELLO).json
    assert counted["count"] == chat(daemon).json["usage"]["prompt_tokens"]
    assert counted["tokens"][:2] == [BOS, TURN_START]
    begun = tokenize(daemon, messages=HELLO, add_generation_prompt=False).json["tokens"]
    assert begun[-2:] == [TURN_END, ord("\n")]


def test_tokens_become_text_under_both_names(daemon: RunningDaemon) -> None:
    body = send(daemon, "POST", "/detokenize", {"model": MODEL, "tokens": [72, 0xC3, 0xA9]}).json
    assert body == {"content": "Hé", "prompt": "Hé"}
    reply = send(daemon, "POST", "/detokenize", {"model": MODEL, "tokens": [5000]})
    assert (reply.status, reply.error["param"]) == (400, "tokens")


def test_template_is_applied_to_messages_and_tools(daemon: RunningDaemon) -> None:
    body = {"model": MODEL, "messages": HELLO}
    prompt = send(daemon, "POST", "/apply-template", body).json["prompt"]
    assert prompt == "<s><|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    tools = [{"type": "function", "function": {"name": "add"}}]
    assert "add" in send(daemon, "POST", "/apply-template", {**body, "tools": tools}).json["prompt"]


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/apply-template", {}, "messages"),
        ("/apply-template", {"messages": HELLO, "tools": "add"}, "tools"),
        ("/apply-template", {"messages": [{"content": "a"}]}, "messages[0].role"),
        ("/detokenize", {"tokens": "a"}, "tokens"),
        ("/tokenize", {"content": 5}, "content"),
    ],
)
def test_malformed_requests_are_refused_by_name(
    daemon: RunningDaemon, path: str, fields: dict[str, Any], param: str
) -> None:
    reply = send(daemon, "POST", path, {"model": MODEL, **fields})
    assert (reply.status, reply.error["param"]) == (400, param)
