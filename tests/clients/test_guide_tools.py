"""The built-in model calls tools by itself, as OpenAI's official client sees it: nothing demands a call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

from llmd.builtin.guide import guide_directory
from tests.serving.running import RunningDaemon, directories_below, running_daemon

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city"],
}
TIMER = {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the current weather of a city",
            "parameters": WEATHER,
        },
    },
    {
        "type": "function",
        "function": {"name": "set_timer", "description": "Set a timer", "parameters": TIMER},
    },
]
ASKED: list[Any] = [{"role": "user", "content": "What is the weather in Lisbon?"}]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("guide"))
    with running_daemon(directories, models=(str(guide_directory()),), device="cpu") as running:
        yield running


@pytest.fixture
def client(served: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def answered(client: openai.OpenAI, messages: list[Any]) -> ChatCompletion:
    return client.chat.completions.create(
        model="guide", messages=messages, tools=TOOLS, temperature=0, max_tokens=100
    )


def test_a_call_whose_arguments_fit_the_schema_and_then_an_answer_from_its_result(
    client: openai.OpenAI,
) -> None:
    first = answered(client, ASKED)
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.choices[0].message.tool_calls is not None
    (call,) = first.choices[0].message.tool_calls
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    arguments = json.loads(call.function.arguments)
    jsonschema.validate(arguments, WEATHER)
    assert (call.function.name, arguments) == ("get_weather", {"city": "Lisbon"})

    called: Any = first.choices[0].message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": '{"temperature": 21, "sky": "cloudy"}'}
    last = answered(client, [*ASKED, called, result])
    assert last.choices[0].finish_reason == "stop"
    text = last.choices[0].message.content or ""
    assert "21" in text
    assert "cloudy" in text


def test_a_stream_brings_the_same_call(client: openai.OpenAI) -> None:
    chunks = client.chat.completions.create(
        model="guide", messages=ASKED, tools=TOOLS, temperature=0, max_tokens=100, stream=True
    )
    parts = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    functions = [part.function for part in parts if part.function]
    assert [function.name for function in functions if function.name] == ["get_weather"]
    assert json.loads("".join(function.arguments or "" for function in functions)) == {"city": "Lisbon"}


def test_no_call_where_no_tool_fits(client: openai.OpenAI) -> None:
    answer = answered(client, [{"role": "user", "content": "How do I stop the daemon?"}])
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls is None
    assert "llmd stop --daemon" in (answer.choices[0].message.content or "")
