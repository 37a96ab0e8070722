"""Custom tools, whose input is text that a grammar may bind, through OpenAI's client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.clients.sse import events
from tests.clients.strict import check
from tests.clients.strict_responses import check_event, check_response
from tests.serving.http import send
from tests.serving.model import TOOL_TEMPLATE, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

LARK = 'start: "set \\"" CNAME "\\" to\\n" sum LF\nsum: sum "+" DIGIT | DIGIT | "(" sum ")"\nCNAME: /[a-z]{1,4}/\n%import common (DIGIT, LF)\n'
FITS = re.compile(r'set "[a-z]{1,4}" to\n[0-9+()]+\n')
GRAMMARS = {
    "lark": ({"syntax": "lark", "definition": LARK}, FITS),
    "regex": ({"syntax": "regex", "definition": r"[ab]{2}\n|\"x\""}, re.compile('[ab]{2}\n|"x"')),
}
ASKED: Any = [{"role": "user", "content": "Set x to 1"}]
NOW: Any = {"type": "function", "function": {"name": "now", "parameters": {"properties": {}}}}
FIELDS: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 300,
    "temperature": 0,
    "reasoning_effort": "none",
    "logit_bias": {str(ord(sign)): -100 for sign in "(+"},
}
NAMED: Any = {"type": "custom", "custom": {"name": "edit"}}
ALLOWED: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}


def tool(syntax: str) -> Any:
    form = {"type": "grammar", "grammar": GRAMMARS[syntax][0]}
    return {"type": "custom", "custom": {"name": "edit", "description": "Edits.", "format": form}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("custom"))
    write_model(directories.models / MODEL, context_len=2048, template=TOOL_TEMPLATE)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture
def client(served: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("choice", [NAMED, ALLOWED, "required"], ids=["named", "allowed", "required"])
@pytest.mark.parametrize("syntax", GRAMMARS)
def test_a_chat_calls_it_with_text_that_its_grammar_allows(
    client: openai.OpenAI, syntax: str, choice: Any
) -> None:
    offered = [tool(syntax)] if choice == "required" else [NOW, tool(syntax)]
    raw = client.chat.completions.with_raw_response.create(
        messages=ASKED, tools=offered, tool_choice=choice, parallel_tool_calls=False, **FIELDS
    )
    assert "x-llmd-ignored" not in raw.headers
    answer = check(ChatCompletion, raw.text)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.type, call.custom.name, answer.choices[0].finish_reason) == ("custom", "edit", "tool_calls")
    assert GRAMMARS[syntax][1].fullmatch(call.custom.input)
    message: Any = answer.choices[0].message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    followed = client.chat.completions.create(
        messages=[*ASKED, message, result], tools=[NOW, tool(syntax)], **{**FIELDS, "max_tokens": 2}
    )
    assert followed.choices[0].finish_reason == "length"


def test_the_input_of_a_streamed_call_is_that_of_the_whole_answer(client: openai.OpenAI) -> None:
    fields = {"tools": [tool("lark")], "tool_choice": NAMED, "parallel_tool_calls": False, **FIELDS}
    whole: Any = client.chat.completions.create(messages=ASKED, **fields)
    chunks: list[ChatCompletionChunk] = list(
        client.chat.completions.create(messages=ASKED, stream=True, **fields)
    )
    # The client's types have no calls of custom tools in streams: it keeps what they do not know as it comes.
    deltas: list[Any] = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert (deltas[0].type, deltas[0].custom["name"], deltas[0].index) == ("custom", "edit", 0)
    assert [delta.id is not None for delta in deltas] == [True, *[False] * (len(deltas) - 1)]
    (call,) = whole.choices[0].message.tool_calls
    assert "".join(delta.custom["input"] for delta in deltas) == call.custom.input
    assert len(deltas) > 3
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_without_a_grammar_any_text_is_its_input(client: openai.OpenAI) -> None:
    plain: Any = {"type": "custom", "custom": {"name": "edit"}}
    raw = client.chat.completions.with_raw_response.create(
        messages=ASKED, tools=[plain], tool_choice=NAMED, **{**FIELDS, "max_tokens": 60}
    )
    (call,) = check(ChatCompletion, raw.text).choices[0].message.tool_calls
    assert call.custom.input


@pytest.mark.parametrize("syntax", GRAMMARS)
def test_a_response_calls_it_with_text_that_its_grammar_allows(
    client: openai.OpenAI, served: RunningDaemon, syntax: str
) -> None:
    grammar, fits = GRAMMARS[syntax]
    body: dict[str, Any] = {
        "model": MODEL,
        "input": "Set x to 1",
        "tools": [{"type": "custom", "name": "edit", "format": {"type": "grammar", **grammar}}],
        "tool_choice": {"type": "custom", "name": "edit"},
        "reasoning": {"effort": "none"},
        "temperature": 0,
        "max_output_tokens": 300,
        "logit_bias": FIELDS["logit_bias"],
    }
    whole = send(served, "POST", "/v1/responses", body)
    (item,) = check_response(whole.content).output
    assert (item.type, item.name) == ("custom_tool_call", "edit")
    assert fits.fullmatch(item.input)
    found = events(send(served, "POST", "/v1/responses", {**body, "stream": True}).content)
    parts = [check_event(event.data) for event in found]
    deltas = [part.delta for part in parts if part.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == item.input
    assert len(deltas) >= 3


@pytest.mark.parametrize(
    ("grammar", "said", "param"),
    [
        (
            {"syntax": "lark", "definition": "start: x"},
            "no rule x",
            "tools[0].custom.format.grammar.definition",
        ),
        (
            {"syntax": "lark", "definition": "start: <|a|>"},
            "cannot",
            "tools[0].custom.format.grammar.definition",
        ),
        ({"syntax": "peg", "definition": "x"}, "lark or regex", "tools[0].custom.format.grammar"),
        ({"syntax": "regex", "definition": "(?=a)b"}, "parameters of edit", "tools"),
    ],
)
def test_a_grammar_that_cannot_be_enforced_is_refused_with_its_place(
    client: openai.OpenAI, grammar: Any, said: str, param: str
) -> None:
    form = {"type": "grammar", "grammar": grammar}
    odd: Any = {"type": "custom", "custom": {"name": "edit", "format": form}}
    with pytest.raises(openai.BadRequestError, match=said) as refused:
        client.chat.completions.create(messages=ASKED, tools=[odd], tool_choice=NAMED, **FIELDS)
    assert refused.value.param == param
    assert json.loads(refused.value.response.text)["error"]["code"]
