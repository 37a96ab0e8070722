from __future__ import annotations

import pytest

from llmd.api.parsing import Tool
from llmd.builtin.parsers.glm import load
from tests.daemon.builtin.parsers.readings import joined, only_call, read

WITH_LINES = """\
Let me see.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Zürich
"HB"</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>now
</tool_call>"""
IN_ONE_LINE = (
    'Let me see.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Zürich\n"HB"</arg_value>'
    "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call><tool_call>now</tool_call>"
)


@pytest.mark.parametrize("answer", [WITH_LINES, IN_ONE_LINE], ids=["4.5", "4.7"])
def test_values_are_json_by_the_schema_of_their_argument(answer: str) -> None:
    expected = ("get_weather", '{"city": "Zürich\\n\\"HB\\"", "days": 3}')
    assert read(load(), answer) == ["Let me see.", expected, ("now", "{}")]


def test_long_text_streams_as_it_comes() -> None:
    write = Tool("write", {"properties": {"text": {"type": "string"}}})
    reader = load().open([write])
    assert joined(reader.feed("<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>line 1\nli")) == [
        ("write", '{"text": "line 1\\nli')
    ]


def test_an_argument_that_the_schema_does_not_know_is_json_where_it_can_be() -> None:
    call = (
        "<tool_call>now<arg_key>a</arg_key><arg_value>[1]</arg_value>"
        "<arg_key>b</arg_key><arg_value>[1</arg_value></tool_call>"
    )
    assert only_call(load(), call) == ("now", {"a": [1], "b": "[1"})


@pytest.mark.parametrize(
    "text", ["<tool_call></tool_call>", "<tool_call>two\nlines</tool_call>", "<tool_call>no"]
)
def test_what_has_no_name_is_text(text: str) -> None:
    assert read(load(), text) == [text]
