from __future__ import annotations

import json
from typing import Any

from llmd.builtin.parsers.deepseek import load_v31
from llmd.builtin.parsers.hermes import load
from llmd.chat.templates.template_messages import prepare_messages
from llmd.chat.tools.choice import prepare_tools
from llmd.chat.tools.prompt import tell_tools, tools_in_system_message
from tests.daemon.builtin.parsers.readings import joined, run

HERMES = load()
TOOLS = prepare_tools([{"function": {"name": "now", "description": "The time in Zürich"}}])
CALL = {"id": "c", "type": "function", "function": {"name": "now", "arguments": '{"zone": "CET"}'}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL, CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "12:00"},
    {"role": "tool", "tool_call_id": "c", "content": "12:01"},
]


def test_tools_are_told_in_the_system_message() -> None:
    told = tell_tools(prepare_messages(HISTORY), TOOLS, HERMES)
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    system = told[0]["content"]
    assert system.startswith("Be brief.\n\n")
    assert json.dumps(TOOLS[0]["function"], ensure_ascii=False) in system.split("\n")


def test_calls_of_the_past_are_written_as_they_are_read() -> None:
    told = tell_tools(prepare_messages(HISTORY), TOOLS, HERMES)
    expected = ("now", '{"zone": "CET"}')
    assert joined(run(HERMES.open([]), [told[2]["content"]])) == ["Let me look.", expected, expected]
    assert told[3]["content"] == (
        "<tool_response>\n12:00\n</tool_response>\n<tool_response>\n12:01\n</tool_response>"
    )


def test_the_form_of_calls_is_that_of_the_parser() -> None:
    told = tell_tools(prepare_messages(HISTORY), TOOLS, load_v31())
    arguments = '{"argument": "value"}'
    example = f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function name<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"
    assert told[0]["content"].endswith(f"and nothing after it:\n{example}<｜tool▁calls▁end｜>")
    expected = ("now", '{"zone": "CET"}')
    assert joined(run(load_v31().open([]), [told[2]["content"]])) == ["Let me look.", expected, expected]


def test_without_a_parser_calls_have_the_form_of_hermes() -> None:
    messages = prepare_messages(HISTORY)
    assert tell_tools(messages, TOOLS, None) == tell_tools(messages, TOOLS, HERMES)


def test_a_list_of_no_calls_is_left_out() -> None:
    messages = prepare_messages([{"role": "assistant", "content": "x", "tool_calls": []}])
    for form in (None, HERMES):
        assert [dict(one) for one in tell_tools(messages, [], form)] == [
            {"role": "assistant", "content": "x"}
        ]


def test_conversation_without_tools_is_left_as_it_is() -> None:
    messages = prepare_messages(HISTORY[:2])
    assert tell_tools(messages, [], None) == messages
    assert tools_in_system_message(messages, []) == messages


def test_system_message_is_made_where_there_is_none() -> None:
    messages = prepare_messages(HISTORY[1:2])
    for told in (tell_tools(messages, TOOLS, None), tools_in_system_message(messages, TOOLS)):
        assert [message["role"] for message in told] == ["system", "user"]


def test_tools_can_be_a_key_of_the_system_message() -> None:
    system, *_ = tools_in_system_message(prepare_messages(HISTORY), TOOLS)
    assert system["content"] == "Be brief."
    assert json.loads(system["tools"]) == [TOOLS[0]["function"]]
