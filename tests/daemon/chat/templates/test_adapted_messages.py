from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import AnswerFormats, ParserChoice, choose_formats
from llmd.chat.templates.adapted_messages import adapted_messages
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tools.choice import prepare_tools
from tests.daemon.builtin.parsers.readings import read

GOLDEN = Path(__file__).parents[3] / "golden/templates"

CALL = {"id": "call_1", "function": {"name": "now", "arguments": "{}"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "When?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "12:00"},
]
TOOLS = prepare_tools([{"function": {"name": "now"}}])


def test_template_that_writes_tools_itself_gets_the_messages_as_they_are() -> None:
    assert adapted_messages(MESSAGES, TOOLS, AnswerFormats()) is MESSAGES


def test_tools_go_where_the_template_looks_for_them() -> None:
    told = adapted_messages(MESSAGES, TOOLS, AnswerFormats(tools_go="text"))
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    keyed = adapted_messages(MESSAGES, TOOLS, AnswerFormats(tools_go="system"))
    assert [("tools" in message, message["role"]) for message in keyed][:2] == [
        (True, "system"),
        (False, "user"),
    ]


def test_ids_are_shortened_whatever_becomes_of_the_tools() -> None:
    for formats in (AnswerFormats(call_ids="short"), AnswerFormats(call_ids="short", tools_go="system")):
        *_, answer = adapted_messages(MESSAGES, (), formats)
        assert len(answer["tool_call_id"]) == 9


def test_a_model_reads_past_calls_as_it_writes_them(renderer: TemplateRenderer) -> None:
    source = (GOLDEN / "kimi.jinja").read_text()
    formats = choose_formats(ParserChoice({one.name: one for one in llmd_parsers()}), [source])
    assert formats.calls is not None
    messages = adapted_messages(MESSAGES, TOOLS, formats)
    text = renderer.render(ChatTemplate({"default": source}), messages, tools=TOOLS).text
    _, after_thought = text.split("</think>")
    section, answer = after_thought.split("<|im_end|><|im_system|>now")
    assert read(formats.calls, section) == [("now", "{}")]
    assert answer.startswith("<|im_middle|>## Return of functions.now:0\n12:00<|im_end|>")


def test_malformed_messages_are_refused() -> None:
    with pytest.raises(RequestError, match="role"):
        adapted_messages([{"content": "x"}], (), AnswerFormats(tools_go="text"))
