"""The Responses API through OpenAI's client, over TCP and over the Unix socket."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.responses.input_token_count_response import InputTokenCountResponse

from tests.clients.sse import events
from tests.clients.strict import check
from tests.clients.strict_responses import check_event, check_response
from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon
from tests.serving.script import answer_with

FIELDS: dict[str, Any] = {"model": MODEL, "input": "Hello", "temperature": 0, "max_output_tokens": 12}

SCHEMA = {
    "type": "object",
    "properties": {"deep": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}},
    "required": ["deep", "kind"],
    "additionalProperties": False,
}
FUNCTION: Any = {"type": "function", "name": "read", "parameters": SCHEMA, "strict": True}
ANSWER = {"deep": True, "kind": "a"}
THOUGHT_AND_CALL = (
    "<think>I must look.</think><tool_call>\n"
    + json.dumps({"name": "read", "arguments": ANSWER})
    + "\n</tool_call>"
)


def test_answers_with_nothing_that_its_types_do_not_have(client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(**FIELDS, metadata={"a": "b"}, instructions="Be short.")
    response = check_response(raw.text)
    assert (response.status, response.model, response.metadata) == ("incomplete", MODEL, {"a": "b"})
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 12
    assert response.output_text


def test_streams_the_same_response(client: openai.OpenAI) -> None:
    whole = client.responses.create(**FIELDS)
    with client.responses.stream(**FIELDS) as stream:
        found = list(stream)
    text = "".join(event.delta for event in found if event.type == "response.output_text.delta")
    assert text == whole.output_text
    assert found[-1].type == "response.incomplete"
    assert found[-1].response.output_text == whole.output_text


def test_a_response_that_ends_by_itself_is_completed(client: openai.OpenAI) -> None:
    text = client.responses.create(**FIELDS).output_text
    with client.responses.stream(**FIELDS, extra_body={"stop": text[4:6]}) as stream:
        final = stream.get_final_response()
    assert (final.status, final.output_text) == ("completed", text[: text.index(text[4:6])])


def test_every_event_is_one_that_its_types_have_in_their_order(daemon: RunningDaemon) -> None:
    found = events(send(daemon, "POST", "/v1/responses", {**FIELDS, "stream": True}).content)
    checked = [check_event(event.data) for event in found]
    assert [event.sequence_number for event in checked] == list(range(len(checked)))
    kinds = [event.type.removeprefix("response.") for event in checked]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert set(kinds[4:-4]) == {"output_text.delta"}
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]


def test_thinks_and_calls_functions_in_the_clients_own_types(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, THOUGHT_AND_CALL)
    fields: dict[str, Any] = {"model": MODEL, "tools": [FUNCTION]}
    with openai.OpenAI(base_url=f"{agents.url}/v1", api_key="none", max_retries=0) as client:
        whole = check_response(client.responses.with_raw_response.create(input="Hello", **fields).text)
        with client.responses.stream(input="Hello", **fields) as stream:
            final = stream.get_final_response()
        for response in (whole, final):
            output: list[Any] = [*response.output]
            thought, call = output
            assert (thought.type, thought.content[0].text) == ("reasoning", "I must look.")
            assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "read", ANSWER)
        assert whole.usage.output_tokens_details.reasoning_tokens > 0
        answer_with(monkeypatch, "<think></think>Done.")
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "x"}
        asked: Any = {"role": "user", "content": "Hello"}
        said: Any = [item.to_dict() for item in final.output]
        last = client.responses.create(input=[asked, *said, result], **fields)
    assert (last.output_text, last.status) == ("Done.", "completed")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "read"}])
def test_any_model_makes_a_call_that_is_required(agents: RunningDaemon, choice: Any) -> None:
    fields: dict[str, Any] = {**FIELDS, "model": "thoughtless", "max_output_tokens": 400}
    fields |= {"tools": [FUNCTION], "parallel_tool_calls": False}
    with openai.OpenAI(base_url=f"{agents.url}/v1", api_key="none", max_retries=0) as client:
        response = client.responses.create(**fields, tool_choice=choice)
    assert response.status == "completed"
    (call,) = response.output
    assert call.type == "function_call"
    assert call.name == "read"
    jsonschema.validate(json.loads(call.arguments), SCHEMA)


def test_an_answer_keeps_to_a_schema(client: openai.OpenAI) -> None:
    form = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
    fields = {**FIELDS, "max_output_tokens": 100, "text": {"format": form}}
    response = check_response(client.responses.with_raw_response.create(**fields).text)
    jsonschema.validate(json.loads(response.output_text), SCHEMA)
    assert (response.status, response.text.format.name) == ("completed", "answer")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**{**fields, "text": {"format": {**form, "schema": {"uniqueItems": True}}}})
    assert (refused.value.code, refused.value.param) == ("unsupported_schema", "text.format")


def test_a_prompt_is_cut_only_on_request_and_the_reply_says_so(client: openai.OpenAI) -> None:
    turns: Any = [{"role": "user", "content": letter * 120} for letter in "abcdef"]
    fields = {**FIELDS, "input": turns}
    with pytest.raises(openai.BadRequestError):
        client.responses.create(**fields)
    raw = client.responses.with_raw_response.create(**fields, truncation="auto")
    assert int(raw.headers["x-llmd-truncated"]) > 200
    with client.responses.with_streaming_response.create(**fields, truncation="auto", stream=True) as reply:
        assert reply.headers["x-llmd-truncated"] == raw.headers["x-llmd-truncated"]


def test_keeps_shows_goes_on_from_and_forgets_a_response(client: openai.OpenAI) -> None:
    first = client.responses.create(**FIELDS, store=True)
    assert client.responses.retrieve(first.id) == first
    second = client.responses.create(**{**FIELDS, "input": "More"}, previous_response_id=first.id)
    assert second.previous_response_id == first.id
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_counts_the_tokens_that_a_response_uses(client: openai.OpenAI) -> None:
    raw = client.responses.input_tokens.with_raw_response.count(model=MODEL, input="Hello")
    counted = check(InputTokenCountResponse, raw.text)
    usage = client.responses.create(**FIELDS).usage
    assert usage is not None
    assert counted.input_tokens == usage.input_tokens


def test_errors_arrive_as_the_clients_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as long:
        client.responses.create(**{**FIELDS, "input": "x" * CONTEXT_LEN})
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**FIELDS, background=True)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "background")


async def test_asynchronous_client_streams(async_client: openai.AsyncOpenAI) -> None:
    whole = await async_client.responses.create(**FIELDS)
    stream = await async_client.responses.create(**FIELDS, stream=True)
    pieces = [event.delta async for event in stream if event.type == "response.output_text.delta"]
    assert "".join(pieces) == whole.output_text
