from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.tools.choice import ToolChoice
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.tools import ToolUse, read_tools

NOW = {"name": "now", "parameters": {"type": "object", "properties": {}}}
TODAY = {**NOW, "name": "today"}
TOOLS = [{"type": "function", "function": one} for one in (NOW, TODAY)]
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
PATCH = {"type": "custom", "custom": {"name": "patch", "description": "Patches.", "format": GRAMMAR}}


def read(**fields: Any) -> ToolUse:
    return read_tools(RequestFields(fields))


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [function(name) for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


@pytest.mark.parametrize(
    ("sent", "choice"),
    [
        (None, ToolChoice("auto")),
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (function("now"), ToolChoice("required", ("now",))),
        (allowed("auto", "today"), ToolChoice("auto", ("today",))),
        (allowed("required", "now", "today"), ToolChoice("required", ("now", "today"))),
    ],
)
def test_every_form_of_choice_is_read(sent: Any, choice: ToolChoice) -> None:
    assert read(tools=TOOLS, tool_choice=sent) == ToolUse(tuple(TOOLS), choice)


def test_custom_tools_are_functions_of_one_text_to_the_model() -> None:
    use = read(tools=[TOOLS[0], PATCH])
    shown = use.tools[1]["function"]
    assert (shown["name"], shown["description"]) == ("patch", "Patches.")
    assert list(shown["parameters"]["properties"]) == ["input"]
    assert list(use.custom) == list(use.bindings()) == ["patch"]
    assert use.bindings()["patch"]["properties"]["input"]["pattern"] == "^(?:a+)$"


@pytest.mark.parametrize(
    ("sent", "choice"),
    [
        ({"type": "custom", "custom": {"name": "patch"}}, ToolChoice("required", ("patch",))),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [function("now"), {"type": "custom", "custom": {"name": "patch"}}],
                },
            },
            ToolChoice("required", ("now", "patch")),
        ),
    ],
)
def test_custom_tools_are_chosen_by_name(sent: Any, choice: ToolChoice) -> None:
    assert read(tools=[TOOLS[0], PATCH], tool_choice=sent).choice == choice


def test_calls_may_be_kept_to_one() -> None:
    assert not read(tools=TOOLS, parallel_tool_calls=False).choice.parallel


def test_functions_of_old_are_tools_of_which_one_is_called() -> None:
    use = read(functions=[NOW, TODAY], function_call={"name": "today"})
    assert use == ToolUse(tuple(TOOLS), ToolChoice("required", ("today",), parallel=False), is_legacy=True)
    assert read(functions=[NOW]).choice == ToolChoice("auto", parallel=False)
    assert read(functions=[NOW], function_call="none").choice.mode == "none"
    assert not read(functions=[], function_call="auto", tools=TOOLS).is_legacy


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": {"a": 1}}, "tools"),
        ({"tools": ["now"]}, "tools[0]"),
        ({"tools": [{"type": "custom"}]}, "tools[0].custom"),
        ({"tools": [{"type": "custom", "custom": {"name": 3}}]}, "tools[0].custom"),
        ({"tools": [*TOOLS, {"type": "custom", "custom": {"name": "now"}}]}, "tools"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "x", "format": {"type": "x"}}}]},
            "tools[0].custom.format",
        ),
        ({"tools": [PATCH], "tool_choice": {"type": "custom", "custom": {"name": "x"}}}, "tool_choice"),
        ({"tools": [PATCH], "tool_choice": {"type": "custom", "name": "patch"}}, "tool_choice"),
        ({"functions": ["now"]}, "functions[0]"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": function("later")}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": allowed("never", "now")}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": allowed("auto", "later")}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": allowed("required")}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"function_call": {"name": "now"}}, "function_call"),
        ({"functions": [NOW], "function_call": "required"}, "function_call"),
        ({"functions": [NOW], "function_call": {"name": "later"}}, "function_call"),
        ({"parallel_tool_calls": "maybe"}, "parallel_tool_calls"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(**fields)
    assert refused.value.param == param
