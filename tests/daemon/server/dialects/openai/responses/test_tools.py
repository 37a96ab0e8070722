from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import FunctionTool

from llmd.api.errors import RequestError
from llmd.chat.tools.choice import ToolChoice
from llmd.server.dialects.openai.responses.tools import Tools, read_tools
from llmd.server.http.request_fields import RequestFields
from tests.clients.strict import check

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def function(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": SCHEMA, **fields}


def read(*tools: Any, **fields: Any) -> Tools:
    return read_tools(RequestFields({"tools": [*tools], **fields}))


def test_flat_functions_are_shown_as_templates_know_them() -> None:
    tools = read(function("read", description="Reads.", strict=True))
    assert tools.prompt_tools() == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA},
        }
    ]
    assert tools.named("read") == {"name": "read"}


def test_functions_are_repeated_as_the_client_has_them() -> None:
    (echoed,) = (tool.echo() for tool in read(function("read", strict=False)).functions)
    assert check(FunctionTool, json.dumps(echoed)).name == "read"
    assert (echoed["parameters"], echoed["strict"], echoed["description"]) == (SCHEMA, False, None)


def test_tools_of_other_types_are_skipped_and_said() -> None:
    tools = read({"type": "web_search"}, function("read"), {"type": "local_shell"}, "odd")
    assert [tool.name for tool in tools.functions] == ["read"]
    assert tools.skipped == ("tools[0].web_search", "tools[2].local_shell", "tools[3].None")


def test_functions_of_a_namespace_are_called_with_it() -> None:
    space = {
        "type": "namespace",
        "name": "mcp__files",
        "description": "Files.",
        "tools": [function("read"), function("list"), {"type": "custom", "name": "x"}],
    }
    tools = read(function("list"), space)
    assert [tool["function"]["name"] for tool in tools.prompt_tools()] == ["list", "read", "mcp__files.list"]
    assert tools.named("read") == {"name": "read", "namespace": "mcp__files"}
    assert tools.named("mcp__files.list") == {"name": "list", "namespace": "mcp__files"}
    assert tools.named("list") == {"name": "list"}
    assert tools.skipped == ("tools[1].tools[2].custom",)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "read"}, ToolChoice("required", ("read",), parallel=False)),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]},
            ToolChoice("auto", ("read",)),
        ),
    ],
)
def test_a_choice_says_what_may_be_called(sent: Any, expected: ToolChoice) -> None:
    tools = read(function("read"), function("list"), tool_choice=sent)
    assert tools.choice == expected
    assert tools.sent_choice == ("auto" if sent is None else sent)


def test_calls_may_be_limited_to_one() -> None:
    assert not read(function("read"), parallel_tool_calls=False).choice.parallel


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": "read"}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": ["read"]}]}, "tools[0].name"),
        ({"tools": [function("read")], "tool_choice": "perhaps"}, "tool_choice"),
        ({"tools": [function("read")], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tools": [function("read")], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [function("read"), function("read")]}, "tools"),
    ],
)
def test_what_cannot_be_called_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_tools(RequestFields(fields))
    assert caught.value.param == param
