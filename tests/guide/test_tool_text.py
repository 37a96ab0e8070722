"""The text of tools in training is what the chat template writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guide.tokens import CHAT_TEMPLATE
from guide.tool_text import calls_text, results_text, signature, told
from llmd.builtin.guide import guide_directory
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import ParserChoice, choose_formats
from llmd.chat.templates.render_messages import RenderJob
from llmd.chat.templates.template_environment import TemplateSandbox

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather.\nOf a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "its name"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": ["integer", "null"]},
            "extra": {},
        },
        "required": ["city"],
    },
}
PING: dict[str, Any] = {"name": "ping", "parameters": {"type": "object", "properties": {}}}


def rendered(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str:
    offered = [{"type": "function", "function": function} for function in tools or ()]
    variables = {"messages": messages, "tools": offered or None, "add_generation_prompt": True}
    return TemplateSandbox().render(RenderJob(CHAT_TEMPLATE, variables, "2026-01-01T00:00:00"))


def test_a_signature_names_arguments_with_their_kinds_and_says_which_may_be_missing() -> None:
    line = "get_weather(city: string, unit?: celsius|fahrenheit, days?: integer|null, extra?: any): Get the weather."
    assert signature(WEATHER) == line
    assert signature(PING) == "ping()"


@pytest.mark.parametrize("system", ["", "Be brief."])
def test_the_template_tells_of_tools_as_training_does(system: str) -> None:
    first: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    text = "\n\n".join(filter(None, (system, told([WEATHER, PING]))))
    expected = f"<|system|>{text}<|end|><|user|>Hi<|end|><|assistant|>"
    assert rendered([*first, {"role": "user", "content": "Hi"}], [WEATHER, PING]) == expected


def test_the_template_writes_calls_and_results_as_training_does() -> None:
    calls = [("get_weather", {"city": "Zürich", "days": 2}), ("ping", {})]
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": values}} for name, values in calls],
        },
        {"role": "tool", "content": " 14 degrees\n"},
        {"role": "tool", "content": "ok"},
    ]
    middle = f"<|assistant|>{calls_text(calls)}<|end|><|user|>{results_text(['14 degrees', 'ok'])}<|end|>"
    expected = f"<|user|>Hi<|end|>{middle}<|assistant|>"
    assert rendered(history) == expected


def test_without_tools_a_conversation_is_written_turn_by_turn() -> None:
    messages = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi"}]
    assert rendered(messages) == "<|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|>"


def test_the_shipped_template_is_this_one() -> None:
    config = json.loads((guide_directory() / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["chat_template"] == CHAT_TEMPLATE


def test_the_template_chooses_the_parser_of_calls_and_shows_tools_itself() -> None:
    parsers = {parser.name: parser for parser in llmd_parsers() if parser.reads == "calls"}
    scores = {name: parser.matches(CHAT_TEMPLATE) for name, parser in parsers.items()}
    assert [name for name, score in scores.items() if score > 0] == ["hermes"]
    assert choose_formats(ParserChoice(parsers), [CHAT_TEMPLATE]).tools_go == "template"
