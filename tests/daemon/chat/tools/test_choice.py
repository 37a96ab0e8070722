from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.tools.choice import ToolChoice, check_choice, prepare_tools


def function(name: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = function("weather", description="Tells the weather", parameters=SCHEMA)


def test_templates_see_name_description_and_parameters_alone() -> None:
    asked = {**WEATHER, "function": {**WEATHER["function"], "strict": True}, "cache": "x"}
    assert prepare_tools([asked]) == [WEATHER]


def test_tool_without_parameters_takes_an_empty_object() -> None:
    (tool,) = prepare_tools([{"function": {"name": "now", "parameters": None}}])
    assert tool == function("now", parameters={"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ("weather", "tools[1]"),
        ({"type": "web_search"}, "tools[1]"),
        ({"type": "custom", "custom": {"name": "x"}}, "tools[1]"),
        (function(""), "tools[1].function.name"),
        (function(None), "tools[1].function.name"),
        (function("two words"), "tools[1].function.name"),
        (function("x", description=1), "tools[1].function.description"),
        (function("x", parameters=["city"]), "tools[1].function.parameters"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_place(tool: Any, param: str) -> None:
    with pytest.raises(RequestError) as refused:
        prepare_tools([WEATHER, tool])
    assert refused.value.param == param


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="two tools are named weather"):
        prepare_tools([WEATHER, function("now"), WEATHER])


def test_choice_among_the_tools_is_good() -> None:
    for choice in (ToolChoice(), ToolChoice("required", ("weather",)), ToolChoice("none")):
        check_choice(choice, [WEATHER])
    check_choice(ToolChoice(), [])


def test_choice_of_an_unknown_tool_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(RequestError, match="no tool 'time'; the tools are: weather") as refused:
        check_choice(ToolChoice("required", ("time",)), [WEATHER])
    assert refused.value.param == "tool_choice"


def test_required_call_without_tools_is_refused() -> None:
    with pytest.raises(RequestError, match="there are no tools"):
        check_choice(ToolChoice("required"), [])
