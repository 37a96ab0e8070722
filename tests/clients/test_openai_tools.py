"""Tools and reasoning as OpenAI's official client sees them.
A random model calls what it must: the grammar makes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

from tests.serving.model import TOOL_TEMPLATE, write_model
from tests.serving.running import RunningDaemon, directories_below, running_daemon

MODEL = "caller"
PLAIN = "plain"
THINKER = "thinker"
PLACE = {
    "type": "object",
    "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}, "unit": {"enum": ["C", "F"]}},
    "required": ["days", "unit"],
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMAS = {"weather": PLACE, "now": NOTHING}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": f"Tells the {name}", "parameters": schema}}
    for name, schema in SCHEMAS.items()
]
NAMED: Any = {"type": "function", "function": {"name": "weather"}}
ASKED: list[Any] = [{"role": "user", "content": "What is the weather?"}]
# A random model that begins to think never stops: its prompt has no thinking.
FIELDS: dict[str, Any] = {
    "model": MODEL,
    "temperature": 0,
    "max_tokens": 200,
    "parallel_tool_calls": False,
    "reasoning_effort": "none",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A model whose template knows tools and reasoning, one whose does not, and one that must think,
    between tokens.
    """
    directories = directories_below(tmp_path_factory.mktemp("tools"))
    write_model(directories.models / MODEL, context_len=1024, template=TOOL_TEMPLATE)
    write_model(directories.models / PLAIN, context_len=2048)
    thinks = TOOL_TEMPLATE.removesuffix("{% endif %}") + "{{ '<think>\n' }}{% endif %}"
    write_model(directories.models / THINKER, extra_specials=("<think>", "</think>"), template=thinks)
    with running_daemon(directories, models=(MODEL,)) as running:
        yield running


@pytest.fixture
def client(served: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def calls_of(answer: ChatCompletion) -> list[ChatCompletionMessageFunctionToolCall]:
    """The calls of an answer, whose arguments follow their schema."""
    calls = []
    for call in answer.choices[0].message.tool_calls or ():
        assert isinstance(call, ChatCompletionMessageFunctionToolCall)
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
        calls.append(call)
    return calls


@pytest.mark.parametrize("model", [MODEL, PLAIN])
def test_required_call_goes_there_and_its_result_comes_back(client: openai.OpenAI, model: str) -> None:
    fields = {**FIELDS, "model": model}
    answer = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice=NAMED, **fields)
    (call,) = calls_of(answer)
    assert (call.function.name, answer.choices[0].finish_reason) == ("weather", "tool_calls")
    assert answer.choices[0].message.content is None
    message: Any = answer.choices[0].message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    followed = client.chat.completions.create(
        messages=[*ASKED, message, result], tools=TOOLS, **{**fields, "max_tokens": 4}
    )
    assert followed.usage is not None
    assert answer.usage is not None
    assert followed.usage.prompt_tokens > answer.usage.prompt_tokens
    assert followed.choices[0].finish_reason == "length"


def test_streamed_call_is_that_of_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice=NAMED, **FIELDS)
    chunks = list(
        client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice=NAMED, stream=True, **FIELDS)
    )
    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [delta.index for delta in deltas] == [0] * len(deltas)
    assert deltas[0].id is not None
    assert deltas[0].function is not None
    assert deltas[0].function.name == "weather"
    assert [delta.id for delta in deltas[1:]] == [None] * (len(deltas) - 1)
    (call,) = calls_of(whole)
    arguments = "".join(delta.function.arguments or "" for delta in deltas if delta.function is not None)
    assert arguments == call.function.arguments
    assert len(deltas) > 3
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(chunk.choices[0].delta.content for chunk in chunks)


def test_accumulator_of_the_client_puts_streamed_calls_together(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        messages=ASKED, tools=TOOLS, tool_choice="required", **{**FIELDS, "parallel_tool_calls": True}
    ) as stream:
        for _ in stream:
            pass
        snapshot = stream.current_completion_snapshot
    calls = snapshot.choices[0].message.tool_calls or []
    assert [call.type for call in calls] == ["function"] * len(calls)
    assert len({call.id for call in calls}) == len(calls) >= 1


@pytest.mark.parametrize("seed", range(3))
def test_without_parallel_calls_there_is_one_and_it_is_among_the_allowed(
    client: openai.OpenAI, seed: int
) -> None:
    fields = {**FIELDS, "temperature": 2, "seed": seed}
    choice: Any = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "now"}}]},
    }
    answer = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice=choice, **fields)
    (call,) = calls_of(answer)
    assert (call.function.name, call.function.arguments.split()) == ("now", ["{}"])


def test_model_that_need_not_call_may_write_text(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=ASKED, tools=TOOLS, **{**FIELDS, "max_tokens": 5})
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize(("bias", "calls"), [(-100, 1), (100, 0)])
def test_call_of_the_models_own_choice_is_bound_and_so_is_the_answer_without_one(
    client: openai.OpenAI, bias: int, calls: int
) -> None:
    """The answer may be ``z``: a bias makes the random model write that, or anything else,
    which can only be a call.
    """
    answer = client.chat.completions.create(
        messages=ASKED,
        tools=TOOLS,
        logit_bias={str(ord("z")): bias},
        extra_body={"structured_outputs": {"choice": ["z"]}},
        **FIELDS,
    )
    assert len(calls_of(answer)) == calls
    assert (answer.choices[0].message.content == "z") is (calls == 0)


def test_functions_of_old_are_answered_as_they_were(client: openai.OpenAI) -> None:
    functions: Any = [tool["function"] for tool in TOOLS]
    answer = client.chat.completions.create(
        messages=ASKED,
        functions=functions,
        function_call={"name": "weather"},
        **{key: value for key, value in FIELDS.items() if key != "parallel_tool_calls"},
    )
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "function_call"
    assert message.function_call is not None
    assert message.function_call.name == "weather"
    jsonschema.validate(json.loads(message.function_call.arguments), PLACE)
    history: list[Any] = [*ASKED, message.model_dump(exclude_none=True)]
    history.append({"role": "function", "name": "weather", "content": "sunny"})
    client.chat.completions.create(messages=history, **{**FIELDS, "max_tokens": 2})


def test_schema_that_cannot_be_enforced_is_refused_where_a_call_is_required(client: openai.OpenAI) -> None:
    odd: Any = [
        {
            "type": "function",
            "function": {
                "name": "odd",
                "parameters": {"not": {"patternProperties": {"a": {"type": "null"}}}},
            },
        }
    ]
    with pytest.raises(openai.BadRequestError, match="odd") as refused:
        client.chat.completions.create(messages=ASKED, tools=odd, tool_choice="required", **FIELDS)
    assert refused.value.param == "tools"
    answer = client.chat.completions.create(messages=ASKED, tools=odd, **{**FIELDS, "max_tokens": 2})
    assert answer.choices[0].finish_reason == "length"


THOUGHT: list[Any] = [*ASKED, {"role": "assistant", "content": "<think>Well"}]
BOUND = {"structured_outputs": {"regex": r", yes\.\n</think>\n\nFour\."}}


def test_reasoning_comes_apart_from_the_answer_and_is_counted(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=THOUGHT, extra_body=BOUND, **FIELDS)
    message = answer.choices[0].message.model_dump()
    assert (message["reasoning"], message["reasoning_content"]) == (", yes.", ", yes.")
    assert message["content"] == "Four."
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens == len(", yes.\n</think>")


def test_reasoning_streams_before_the_answer(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(messages=THOUGHT, stream=True, extra_body=BOUND, **FIELDS))
    deltas = [chunk.choices[0].delta.model_dump() for chunk in chunks]
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == ", yes."
    assert "".join(delta["content"] or "" for delta in deltas) == "Four."
    last_thought = max(place for place, delta in enumerate(deltas) if delta.get("reasoning"))
    assert not any(delta["content"] for delta in deltas[:last_thought])


def test_reasoning_may_be_left_in_the_answer(client: openai.OpenAI) -> None:
    extra = {**BOUND, "reasoning_format": "none"}
    answer = client.chat.completions.create(messages=THOUGHT, extra_body=extra, **FIELDS)
    assert answer.choices[0].message.content == ", yes.\n</think>\n\nFour."
    assert "reasoning" not in answer.choices[0].message.model_dump()


def test_required_call_comes_after_the_reasoning_that_the_prompt_has_closed(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(messages=ASKED, tools=TOOLS, tool_choice=NAMED, **FIELDS)
    assert len(calls_of(answer)) == 1


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_thinking_ends_with_its_budget(client: openai.OpenAI, budget: int) -> None:
    fields = {
        **FIELDS,
        "model": THINKER,
        "reasoning_effort": None,
        "max_tokens": 20,
        "logit_bias": {"258": -100},
    }
    answer = client.chat.completions.create(
        messages=ASKED, extra_body={"thinking_token_budget": budget}, **fields
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens == budget + 1
    assert answer.usage.completion_tokens == 20
    assert answer.choices[0].message.content


def test_thinking_goes_on_without_a_budget(client: openai.OpenAI) -> None:
    bias = {"258": -100, "260": -100}
    fields = {**FIELDS, "model": THINKER, "reasoning_effort": "max", "max_tokens": 20, "logit_bias": bias}
    answer = client.chat.completions.create(messages=ASKED, **fields)
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens == 20
    assert answer.choices[0].message.content == ""
