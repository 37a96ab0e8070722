"""Tool calls and reasoning of each family, as OpenAI's official client gets them from a random model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema
import openai
import pytest
from msgspec import Struct
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

from tests.clients.families import FAMILIES, Family
from tests.serving.running import directories_below, running_daemon

WEATHER = {
    "type": "object",
    "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}, "unit": {"enum": ["C", "F"]}},
    "required": ["days", "unit"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it", "parameters": WEATHER}}
]
ASKED: list[Any] = [{"role": "user", "content": "What is the weather?"}]
REQUIRED: dict[str, Any] = {
    "messages": ASKED,
    "tools": TOOLS,
    "tool_choice": "required",
    "parallel_tool_calls": False,
}
BUDGET = 6
"""Tokens of reasoning: a random model would not end it."""


class Served(Struct, frozen=True):
    """A family whose model is served."""

    family: Family
    url: str
    client: openai.OpenAI

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that every request has."""
        family = self.family
        extra = {"thinking_token_budget": BUDGET, "chat_template_kwargs": family.switches}
        bias = {str(family.id_of(family.opens)): 100} if family.opens else {}
        return {
            "model": family.name,
            "temperature": 0,
            "max_tokens": 400,
            "logit_bias": bias,
            "extra_body": extra,
        }

    def call(self) -> ChatCompletion:
        """An answer that must have one call."""
        answer: ChatCompletion = self.client.chat.completions.create(**REQUIRED, **self.fields)
        return answer


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda family: family.name)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    family: Family = request.param
    directories = directories_below(tmp_path_factory.mktemp("family"))
    family.write(directories.models)
    with (
        running_daemon(directories, models=(family.name,), device="cpu") as daemon,
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield Served(family, daemon.url, client)


def only_call(answer: ChatCompletion) -> ChatCompletionMessageFunctionToolCall:
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert len(calls) == 1
    assert isinstance(calls[0], ChatCompletionMessageFunctionToolCall)
    return calls[0]


def reasoning_of(message: Any) -> str:
    """The reasoning, of a message or a part of one; the client knows no such field."""
    return getattr(message, "reasoning_content", None) or ""


def test_a_required_call_comes_back_in_the_words_of_the_template(served: Served) -> None:
    answer = served.call()
    call, message = only_call(answer), answer.choices[0].message
    jsonschema.validate(json.loads(call.function.arguments), WEATHER)
    assert (call.function.name, answer.choices[0].finish_reason) == ("weather", "tool_calls")
    assert bool(reasoning_of(message)) == served.family.reasons
    assert not message.content
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    asked = {
        "model": served.family.name,
        "messages": [*ASKED, message.model_dump(exclude_none=True), result],
        "tools": TOOLS,
    }
    prompt = httpx2.post(f"{served.url}/apply-template", json=asked).json()["prompt"]
    assert served.family.call in prompt
    assert served.family.result in prompt


def test_a_streamed_call_is_that_of_the_whole_answer(served: Served) -> None:
    whole = served.call()
    chunks = list(served.client.chat.completions.create(stream=True, **REQUIRED, **served.fields))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    calls = [call.function for delta in deltas for call in delta.tool_calls or ()]
    arguments = "".join(call.arguments or "" for call in calls if call is not None)
    assert arguments == only_call(whole).function.arguments
    assert "".join(map(reasoning_of, deltas)) == reasoning_of(whole.choices[0].message)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_schema_holds_for_the_text_behind_the_reasoning(served: Served) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER}}
    answer = served.client.chat.completions.create(messages=ASKED, response_format=wanted, **served.fields)
    assert answer.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(answer.choices[0].message.content or ""), WEATHER)
    assert bool(reasoning_of(answer.choices[0].message)) == served.family.reasons
