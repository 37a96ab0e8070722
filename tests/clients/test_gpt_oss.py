"""A random gpt-oss with the published template, as OpenAI's official client sees it.
The grammar makes it call, and its channels become reasoning, calls and text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

from tests.golden.models.mixtures import gpt_oss
from tests.golden.samples import TEMPLATES, named
from tests.serving.model import SPECIALS, write_model
from tests.serving.running import directories_below, running_daemon

MODEL = "gpt-oss"
HARMONY = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
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
FIELDS: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 1000}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    directories = directories_below(tmp_path_factory.mktemp("harmony"))
    write_model(
        directories.models / MODEL,
        context_len=4096,
        family=gpt_oss,
        extra_specials=HARMONY,
        template=named(TEMPLATES / "openai-gpt-oss-120b.jinja").read_text(),
        eos_id=256 + len(SPECIALS) + HARMONY.index("<|return|>"),
    )
    with (
        running_daemon(directories, models=(MODEL,), device="cpu") as daemon,
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


def only_call(answer: ChatCompletion) -> ChatCompletionMessageFunctionToolCall:
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert len(calls) == 1
    assert isinstance(calls[0], ChatCompletionMessageFunctionToolCall)
    return calls[0]


def test_a_required_call_goes_there_and_its_result_comes_back(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice="required", **FIELDS)
    call = only_call(answer)
    assert getattr(answer.choices[0].message, "reasoning_content", "")
    jsonschema.validate(json.loads(call.function.arguments), WEATHER)
    assert (call.function.name, answer.choices[0].finish_reason) == ("weather", "tool_calls")
    message: Any = answer.choices[0].message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    followed = client.chat.completions.create(
        messages=[*ASKED, message, result], tools=TOOLS, **FIELDS | {"max_tokens": 4}
    )
    assert answer.usage is not None
    assert followed.usage is not None
    assert followed.usage.prompt_tokens > answer.usage.prompt_tokens


def test_a_streamed_call_is_that_of_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice="required", **FIELDS)
    chunks = list(
        client.chat.completions.create(
            messages=ASKED, tools=TOOLS, tool_choice="required", stream=True, **FIELDS
        )
    )
    deltas = [call.function for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    arguments = "".join(delta.arguments or "" for delta in deltas if delta is not None)
    assert arguments == only_call(whole).function.arguments
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_schema_holds_for_the_final_channel_alone(client: openai.OpenAI) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER}}
    answer = client.chat.completions.create(messages=ASKED, response_format=wanted, **FIELDS)
    assert answer.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(answer.choices[0].message.content or ""), WEATHER)
