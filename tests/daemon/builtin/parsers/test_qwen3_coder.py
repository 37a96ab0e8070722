from __future__ import annotations

from llmd.api.parsing import Tool
from llmd.builtin.parsers.qwen3_coder import load
from tests.daemon.builtin.parsers.readings import joined, only_call, read

ANSWER = """\
Let me see.
<tool_call>
<function=get_weather>
<parameter=city>
Zürich
"HB"
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>
<tool_call>
<function=now>
</function>
</tool_call>"""


def test_values_are_json_by_the_schema_of_their_parameter() -> None:
    expected = ("get_weather", '{"city": "Zürich\\n\\"HB\\"", "days": 3}')
    assert read(load(), ANSWER) == ["Let me see.", expected, ("now", "{}")]


def test_outer_tag_may_be_missing() -> None:
    bare = ANSWER.replace("<tool_call>\n", "")
    assert read(load(), bare)[1:] == read(load(), ANSWER)[1:]


def test_long_text_streams_as_it_comes() -> None:
    write = Tool("write", {"properties": {"text": {"type": "string"}}})
    reader = load().open([write])
    assert joined(reader.feed("<tool_call><function=write><parameter=text>\nline 1\nli")) == [
        ("write", '{"text": "line 1\\nli')
    ]
    (rest,) = reader.feed('ne "2"\n</parameter></function></tool_call>')
    assert rest.json == 'ne \\"2\\""}'  # type: ignore[union-attr]


def test_parameter_that_the_schema_does_not_know_is_json_where_it_can_be() -> None:
    call = "<tool_call><function=now><parameter=a>[1]</parameter><parameter=b>[1</parameter></function></tool_call>"
    assert only_call(load(), call) == ("now", {"a": [1], "b": "[1"})


def test_tag_without_a_function_is_text() -> None:
    text = "<tool_call>\nnothing\n</tool_call>"
    assert read(load(), text) == [text]
