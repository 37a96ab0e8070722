"""The official client of OpenAI, over TCP and over the Unix socket."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionUserMessageParam

from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "Hello"}]
FIELDS: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 12}


def test_chats(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=HELLO, **FIELDS)
    assert answer.model == MODEL
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12


def counts(usage: CompletionUsage | None) -> tuple[int, int, int]:
    """All but what was cached, which is more the second time."""
    assert usage is not None
    return usage.prompt_tokens, usage.completion_tokens, usage.total_tokens


def test_streams_the_same_chat(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=HELLO, **FIELDS)
    fields = {**FIELDS, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(messages=HELLO, stream=True, **fields))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert counts(chunks[-1].usage) == counts(whole.usage)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"


def test_accumulates_a_stream_with_its_logprobs(client: openai.OpenAI) -> None:
    text = client.chat.completions.create(messages=HELLO, **FIELDS).choices[0].message.content
    assert text is not None
    fields = {
        **FIELDS,
        "logprobs": True,
        "top_logprobs": 2,
        "stop": text[6:8],
    }  # it raises where the limit ends it
    whole = client.chat.completions.create(messages=HELLO, **fields)
    with client.chat.completions.stream(messages=HELLO, **fields) as stream:
        stream.until_done()
        final = stream.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].logprobs is not None
    assert whole.choices[0].logprobs is not None
    assert final.choices[0].logprobs.content == whole.choices[0].logprobs.content


def test_completes_whole_and_streamed(client: openai.OpenAI) -> None:
    whole = client.completions.create(prompt=["Hello", "Good"], **FIELDS)
    streamed = client.completions.create(prompt=["Hello", "Good"], stream=True, **FIELDS)
    texts = ["", ""]
    for chunk in streamed:
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == [choice.text for choice in whole.choices]


def test_searches_with_beams(client: openai.OpenAI) -> None:
    fields: dict[str, Any] = {
        **FIELDS,
        "n": 3,
        "extra_body": {"use_beam_search": True, "length_penalty": 0.5},
    }
    whole = client.chat.completions.create(messages=HELLO, **fields)
    texts = [choice.message.content for choice in whole.choices]
    assert len(texts) == 3
    streamed = ["", "", ""]
    for chunk in client.chat.completions.create(messages=HELLO, stream=True, **fields):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts


def test_completes_token_ids(client: openai.OpenAI) -> None:
    text = client.completions.create(prompt="Hello", **FIELDS)
    ids = client.completions.create(prompt=[*b"Hello"], **FIELDS)
    assert ids.choices[0].text == text.choices[0].text


def test_lists_and_shows_models(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.id == MODEL
    assert client.models.retrieve(MODEL) == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("org/nobody")


def test_errors_arrive_as_the_clients_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(messages=HELLO, model="nobody")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(messages=HELLO, **FIELDS, extra_body={"truncate_prompt_tokens": 5})
    assert (refused.value.param, refused.value.code) == ("truncate_prompt_tokens", "unsupported_parameter")
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(messages=[{"role": "user", "content": "x" * CONTEXT_LEN}], **FIELDS)
    assert long.value.code == "context_length_exceeded"


def test_extra_fields_and_raw_headers(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        messages=HELLO, **FIELDS, user="me", extra_body={"top_k": 1, "return_token_ids": True}
    )
    assert raw.headers["x-llmd-ignored"] == "user"
    assert raw.request_id is not None
    assert raw.request_id.startswith("req_")
    assert len(json.loads(raw.text)["choices"][0]["token_ids"]) == 12


async def test_asynchronous_client_streams(async_client: openai.AsyncOpenAI) -> None:
    whole = await async_client.chat.completions.create(messages=HELLO, **FIELDS)
    stream = await async_client.chat.completions.create(messages=HELLO, stream=True, **FIELDS)
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == whole.choices[0].message.content
