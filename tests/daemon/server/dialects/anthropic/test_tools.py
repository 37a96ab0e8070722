from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.tools.choice import ToolChoice
from llmd.requests.fields import RequestFields
from llmd.server.dialects.anthropic.tools import Tools, read_tools

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = {"name": "read", "description": "Reads.", "input_schema": SCHEMA}


def read(*tools: Any, **choice: Any) -> Tools:
    return read_tools(RequestFields({"tools": [*tools], "tool_choice": choice or None}))


def test_tools_are_shown_as_templates_know_them() -> None:
    (tool,) = read({**READ, "type": "custom", "cache_control": {"type": "ephemeral"}}).tools
    function = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
    assert tool == {"type": "function", "function": function}


def test_tools_of_the_service_are_skipped_and_said() -> None:
    tools = read({"type": "web_search_20250305", "name": "web_search"}, READ)
    assert [tool["function"]["name"] for tool in tools.tools] == ["read"]
    assert tools.ignored == ("tools.0.web_search_20250305",)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, ToolChoice()),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(parallel=False)),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "tool", "name": "read"}, ToolChoice("required", ("read",))),
        ({"type": "none"}, ToolChoice("none")),
    ],
)
def test_a_choice_says_what_may_be_called(sent: dict[str, Any], expected: ToolChoice) -> None:
    assert read(READ, **sent).choice == expected


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": "read"}, "tools"),
        ({"tools": [{"input_schema": SCHEMA}]}, "tools[0].function.name"),
        ({"tools": [READ, READ]}, "tools"),
        ({"tools": [READ], "tool_choice": {"type": "perhaps"}}, "tool_choice.type"),
        ({"tools": [READ], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tools": [READ], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
    ],
)
def test_what_cannot_be_called_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_tools(RequestFields(fields))
    assert caught.value.param == param
