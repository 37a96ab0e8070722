from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.answers.answer_formats import AnswerFormats
from llmd.chat.templates.adapted_messages import adapted_messages
from llmd.chat.tools.choice import prepare_tools

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
    for formats in (AnswerFormats(short_ids=True), AnswerFormats(short_ids=True, tools_go="system")):
        *_, answer = adapted_messages(MESSAGES, (), formats)
        assert len(answer["tool_call_id"]) == 9


def test_malformed_messages_are_refused() -> None:
    with pytest.raises(RequestError, match="role"):
        adapted_messages([{"content": "x"}], (), AnswerFormats(tools_go="text"))
