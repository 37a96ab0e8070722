from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.tools.choice import ToolChoice
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.responses.calls import CustomCall, FunctionCall
from llmd.server.dialects.openai.responses.tools import Tools, read_tools

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
    assert tools.call("read") == FunctionCall({"name": "read"})


def test_tools_of_other_types_are_skipped_and_said() -> None:
    tools = read({"type": "web_search"}, function("read"), {"type": "local_shell"}, "odd")
    assert [tool.name for tool in tools.offered] == ["read"]
    assert tools.ignored == ("tools[0].web_search", "tools[2].local_shell", "tools[3].None")


def test_functions_of_a_namespace_are_called_with_it() -> None:
    space = {
        "type": "namespace",
        "name": "mcp__files",
        "description": "Files.",
        "tools": [function("read"), function("list"), {"type": "local_shell"}],
    }
    tools = read(function("list"), space)
    assert [tool["function"]["name"] for tool in tools.prompt_tools()] == ["list", "read", "mcp__files.list"]
    assert tools.call("read").named == {"name": "read", "namespace": "mcp__files"}
    assert tools.call("mcp__files.list").named == {"name": "list", "namespace": "mcp__files"}
    assert tools.call("list").named == {"name": "list"}
    assert tools.ignored == ("tools[1].tools[2].local_shell",)


def test_custom_tools_are_called_as_such_and_bound_by_their_grammars() -> None:
    grammar = {"type": "grammar", "syntax": "regex", "definition": "a+"}
    space = {"type": "namespace", "name": "files", "tools": [{"type": "custom", "name": "patch"}]}
    tools = read(space, {"type": "custom", "name": "calc", "format": grammar}, function("read"))
    assert tools.call("patch") == CustomCall({"name": "patch", "namespace": "files"})
    assert tools.call("calc") == CustomCall({"name": "calc"})
    assert tools.ignored == ()
    inputs = {name: schema["properties"]["input"] for name, schema in tools.bindings().items()}
    assert inputs == {"patch": {"type": "string"}, "calc": {"type": "string", "pattern": "^(?:a+)$"}}
    assert tools.offered[1].echo()["format"] == grammar


def test_tools_among_the_items_of_the_input_come_after_the_others() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [function("list"), {"type": "x"}]}
    tools = read_tools(RequestFields({"tools": [function("read")]}), ["odd", item])
    assert [tool.name for tool in tools.offered] == ["read", "list"]
    assert tools.ignored == ("input[1].tools[1].x",)


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"type": "custom"}, "input[0].tools[0].name"),
        ({"type": "custom", "name": "a", "format": "text"}, "input[0].tools[0].format"),
    ],
)
def test_a_malformed_tool_is_refused_with_its_place(tool: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_tools(RequestFields({}), [{"type": "additional_tools", "tools": [tool]}])
    assert caught.value.param == param


def test_an_item_of_tools_without_a_list_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        read_tools(RequestFields({}), [{"type": "additional_tools"}])
    assert caught.value.param == "input[0].tools"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "read"}, ToolChoice("required", ("read",), parallel=False)),
        ({"type": "custom", "name": "patch"}, ToolChoice("required", ("patch",), parallel=False)),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [
                    {"type": "function", "name": "read"},
                    {"type": "custom", "name": "patch"},
                    {"type": "x"},
                ],
            },
            ToolChoice("auto", ("read", "patch")),
        ),
    ],
)
def test_a_choice_says_what_may_be_called(sent: Any, expected: ToolChoice) -> None:
    tools = read(function("read"), {"type": "custom", "name": "patch"}, tool_choice=sent)
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
