"""The official client of Anthropic, over TCP and over the Unix socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import jsonschema
import pytest
from anthropic.types import ErrorResponse, Message, MessageParam, MessageTokensCount, RawMessageStreamEvent

from tests.clients.sse import events
from tests.clients.strict import check
from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon
from tests.serving.script import answer_with

HELLO: list[MessageParam] = [{"role": "user", "content": "Hello"}]
# The client has no argument for the temperature any more.
GREEDY = {"temperature": 0}
FIELDS: dict[str, Any] = {"model": MODEL, "max_tokens": 12, "extra_body": GREEDY}

SCHEMA = {
    "type": "object",
    "properties": {"deep": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}},
    "required": ["deep", "kind"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "list", "input_schema": {"type": "object", "properties": {}}},
]
THOUGHT_AND_CALLS = (
    "<think>I must look.</think>"
    '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
    '<tool_call>\n{"name": "list", "arguments": {}}\n</tool_call>'
)


@pytest.fixture
def client(base: tuple[str, str | None]) -> Iterator[anthropic.Anthropic]:
    url, uds = base
    http = httpx2.Client(transport=httpx2.HTTPTransport(uds=uds))
    with anthropic.Anthropic(base_url=url, api_key="none", http_client=http, max_retries=0) as client:
        yield client


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_answers_with_nothing_that_its_types_do_not_have(client: anthropic.Anthropic) -> None:
    raw = client.messages.with_raw_response.create(messages=HELLO, **FIELDS)
    message = check(Message, raw.text())
    assert (message.model, message.stop_reason, message.usage.output_tokens) == (MODEL, "max_tokens", 12)
    assert message.id.startswith("msg_")
    assert text_of(message) == text_of(raw.parse())
    assert raw.headers["request-id"].startswith("req_")


def test_streams_the_same_message(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(messages=HELLO, **FIELDS)
    with client.messages.stream(messages=HELLO, **FIELDS) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 1
    assert "".join(pieces) == text_of(final) == text_of(whole)
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)


def test_every_event_is_one_that_its_types_have(daemon: RunningDaemon) -> None:
    body = {"model": MODEL, "max_tokens": 12, "messages": HELLO, "stream": True, **GREEDY}
    found = events(send(daemon, "POST", "/v1/messages", body).content)
    assert all(event.name == json.loads(event.data)["type"] for event in found)
    kinds = [check(RawMessageStreamEvent, event.data).type for event in found if event.name != "ping"]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_counts_the_tokens_that_a_message_uses(client: anthropic.Anthropic) -> None:
    raw = client.messages.with_raw_response.count_tokens(model=MODEL, messages=HELLO, system="Be short.")
    counted = check(MessageTokensCount, raw.text()).input_tokens
    usage = client.messages.create(messages=HELLO, system="Be short.", **FIELDS).usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted


def test_cached_tokens_are_told_apart(client: anthropic.Anthropic) -> None:
    question: list[MessageParam] = [{"role": "user", "content": "What is the longest river? " * 4}]
    usages = [client.messages.create(messages=question, **FIELDS).usage for _ in range(2)]
    totals = [usage.input_tokens + (usage.cache_read_input_tokens or 0) for usage in usages]
    assert totals[0] == totals[1]
    assert (usages[1].cache_read_input_tokens or 0) >= 64


def test_a_stop_sequence_is_named_with_its_text(client: anthropic.Anthropic) -> None:
    text = text_of(client.messages.create(messages=HELLO, **FIELDS))
    stop = text[3:5]
    message = client.messages.create(messages=HELLO, stop_sequences=[stop, "never"], **FIELDS)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)
    assert text_of(message) == text[: text.index(stop)]


def test_the_end_of_the_window_is_a_reason_of_its_own(client: anthropic.Anthropic) -> None:
    question: list[MessageParam] = [{"role": "user", "content": "x" * (CONTEXT_LEN - 30)}]
    message = client.messages.create(messages=question, **{**FIELDS, "max_tokens": 4000})
    assert message.stop_reason == "model_context_window_exceeded"


def test_an_answer_goes_on_where_the_last_message_ends(client: anthropic.Anthropic) -> None:
    whole = text_of(client.messages.create(messages=HELLO, **FIELDS))
    begun: list[MessageParam] = [*HELLO, {"role": "assistant", "content": whole[:1]}]
    assert text_of(client.messages.create(messages=begun, **FIELDS)).startswith(whole[1:2])


def test_errors_arrive_as_the_clients_own(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(messages=HELLO, **{**FIELDS, "model": "nobody"})
    error = check(ErrorResponse, missing.value.response.text)
    assert error.request_id == missing.value.request_id
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 512 maximum"):
        client.messages.create(messages=[{"role": "user", "content": "x" * CONTEXT_LEN}], **FIELDS)
    with pytest.raises(anthropic.BadRequestError, match="temperature must be between"):
        client.messages.create(messages=HELLO, **{**FIELDS, "extra_body": {"temperature": 1.5}})


def test_thinks_and_calls_tools_in_the_clients_own_types(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, THOUGHT_AND_CALLS)
    fields: dict[str, Any] = {"model": MODEL, "max_tokens": 2000, "tools": TOOLS}
    with anthropic.Anthropic(base_url=agents.url, api_key="none", max_retries=0) as client:
        raw = client.messages.with_raw_response.create(messages=HELLO, **fields)
        whole = check(Message, raw.text())
        with client.messages.stream(messages=HELLO, **fields) as stream:
            final = stream.get_final_message()
        assert final.stop_reason == whole.stop_reason == "tool_use"
        for message in (whole, final):
            content: list[Any] = [*message.content]
            thinking, read, listing = content
            assert (thinking.type, thinking.thinking) == ("thinking", "I must look.")
            assert (read.name, read.input) == ("read", {"path": "a"})
            assert (listing.name, listing.input) == ("list", {})
            assert read.id != listing.id
        answer_with(monkeypatch, "<think></think>Done.")
        result: MessageParam = {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": block.id, "content": "x"}
                for block in final.content
                if block.type == "tool_use"
            ],
        }
        last = client.messages.create(messages=[*HELLO, final.to_param(), result], **fields)
    assert (text_of(last), last.stop_reason) == ("Done.", "end_turn")


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "read"}])
def test_any_model_makes_a_call_that_is_required(agents: RunningDaemon, choice: dict[str, str]) -> None:
    tools = [{"name": "read", "input_schema": SCHEMA}]
    wanted: Any = {**choice, "disable_parallel_tool_use": True}
    fields = {**FIELDS, "model": "thoughtless", "max_tokens": 400, "tools": tools, "tool_choice": wanted}
    with anthropic.Anthropic(base_url=agents.url, api_key="none", max_retries=0) as client:
        message = client.messages.create(messages=HELLO, **fields)
    assert message.stop_reason == "tool_use"
    (call,) = message.content
    assert call.type == "tool_use"
    assert call.name == "read"
    jsonschema.validate(call.input, SCHEMA)


def test_an_answer_keeps_to_a_schema(client: anthropic.Anthropic) -> None:
    form: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
    message = client.messages.create(messages=HELLO, output_config=form, **{**FIELDS, "max_tokens": 100})
    jsonschema.validate(json.loads(text_of(message)), SCHEMA)
    assert message.stop_reason == "end_turn"
    odd: Any = {"format": {"type": "json_schema", "schema": {"uniqueItems": True}}}
    with pytest.raises(anthropic.BadRequestError, match="uniqueItems at #"):
        client.messages.create(messages=HELLO, output_config=odd, **FIELDS)


def test_lists_and_shows_models(client: anthropic.Anthropic) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.display_name, model.type) == (MODEL, MODEL, "model")
    assert client.models.retrieve(MODEL) == model


async def test_asynchronous_client_streams(base: tuple[str, str | None]) -> None:
    url, uds = base
    http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=uds))
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", http_client=http) as client:
        whole = await client.messages.create(messages=HELLO, **FIELDS)
        async with client.messages.stream(messages=HELLO, **FIELDS) as stream:
            pieces = [text async for text in stream.text_stream]
    assert "".join(pieces) == text_of(whole)
