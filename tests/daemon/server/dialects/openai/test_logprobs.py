from __future__ import annotations

import math
from typing import Any

import pytest

from llmd.chat.answers.answer_text import Alternative, AnswerToken
from llmd.chat.model_text import ModelText
from llmd.server.dialects.openai.logprobs import completion_logprobs
from tests.serving.http import chat, complete
from tests.serving.running import RunningDaemon


def test_completions_have_parallel_lists_with_null_for_what_has_no_logprob(text: ModelText) -> None:
    others = (Alternative(0xE2, -1.0), Alternative(0xE3, -2.0))
    tokens = [AnswerToken(7, 9), AnswerToken(ord("a"), 10, -0.5), AnswerToken(0xE2, 11, -1.5, others)]
    lists = completion_logprobs(text.tokenizer, tokens)
    assert lists["tokens"] == ["\x07", "a", r"bytes:\xe2"]
    assert lists["token_logprobs"] == [None, -0.5, -1.5]
    assert lists["text_offset"] == [9, 10, 11]
    assert lists["top_logprobs"] == [None, {}, {r"bytes:\xe2": -1.0, r"bytes:\xe3": -2.0}]


def content_of(choices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for choice in choices if choice["logprobs"] for entry in choice["logprobs"]["content"]]


def test_greedy_tokens_lead_their_lists_and_streams_carry_the_same_entries(daemon: RunningDaemon) -> None:
    fields = {"logprobs": True, "top_logprobs": 3, "max_tokens": 20, "skip_special_tokens": False}
    (choice,) = chat(daemon, **fields).json["choices"]
    entries = choice["logprobs"]["content"]
    assert choice["logprobs"]["refusal"] is None
    assert len(entries) == 20
    for entry in entries:
        assert len(entry["top_logprobs"]) == 3
        assert entry["logprob"] == entry["top_logprobs"][0]["logprob"] <= 0
        assert entry["bytes"] == entry["top_logprobs"][0]["bytes"]
    text = bytes(byte for entry in entries for byte in entry["bytes"])
    assert text.decode(errors="replace") == choice["message"]["content"]
    chunks = chat(daemon, stream=True, **fields).chunks
    assert content_of([choice for chunk in chunks for choice in chunk["choices"]]) == entries


def test_chosen_token_has_its_logprob_whether_or_not_it_is_listed(daemon: RunningDaemon) -> None:
    entries = chat(daemon, logprobs=True, temperature=2.0, seed=1, max_tokens=20).json["choices"][0][
        "logprobs"
    ]
    assert all(entry["top_logprobs"] == [] for entry in entries["content"])
    assert all(math.isfinite(entry["logprob"]) for entry in entries["content"])


def test_temperature_does_not_change_the_distribution_that_is_told(daemon: RunningDaemon) -> None:
    def first(temperature: float) -> Any:
        reply = chat(daemon, logprobs=True, top_logprobs=5, temperature=temperature, max_tokens=1, seed=1)
        return reply.json["choices"][0]["logprobs"]["content"][0]["top_logprobs"]

    assert first(0.0) == first(2.0)


@pytest.mark.parametrize("stream", [False, True])
def test_completion_offsets_point_at_the_tokens_text(daemon: RunningDaemon, *, stream: bool) -> None:
    reply = complete(daemon, logprobs=2, max_tokens=20, stream=stream, skip_special_tokens=False)
    choices = [c for body in (reply.chunks if stream else [reply.json]) for c in body["choices"]]
    text = "".join(choice["text"] for choice in choices)
    listed = [choice["logprobs"] for choice in choices if choice["logprobs"]]
    offsets = [offset for lists in listed for offset in lists["text_offset"]]
    tokens = [token for lists in listed for token in lists["tokens"]]
    assert len(tokens) == 20
    assert all(len(top) == 2 for lists in listed for top in lists["top_logprobs"])
    placed = [
        (token, at) for token, at in zip(tokens, offsets, strict=True) if not token.startswith("bytes:")
    ]
    assert placed
    # An incomplete character that the next token does not complete appears as U+FFFD before that token's
    # text.
    assert all(text[at:].lstrip("\ufffd").startswith(token) for token, at in placed)


def test_alternatives_need_logprobs(daemon: RunningDaemon) -> None:
    reply = chat(daemon, top_logprobs=3)
    assert (reply.status, reply.error["param"]) == (400, "top_logprobs")
