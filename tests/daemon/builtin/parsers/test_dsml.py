from __future__ import annotations

import pytest

from llmd.api.parsing import CallFormat, Tool
from llmd.builtin.parsers.dsml import load_v4, load_v32
from tests.daemon.builtin.parsers.readings import joined, only_call, read
from tests.golden import samples
from tests.golden.samples import TEMPLATES

ANSWER = """\
Let me see.

<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Zürich
"HB"</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="now">
</｜DSML｜invoke>
</｜DSML｜function_calls>"""
V4_ANSWER = ANSWER.replace("function_calls", "tool_calls")
VERSIONS = [
    pytest.param(load_v32(), "function_calls", "deepseek-ai-DeepSeek-V3.2.jinja", id="V3.2"),
    pytest.param(load_v4(), "tool_calls", "deepseek-ai-DeepSeek-V4.jinja", id="V4"),
    pytest.param(load_v4(), "tool_calls", "deepseek-ai-DeepSeek-V4-Flash-0731.jinja", id="V4-Flash"),
]


def call(parameters: str) -> str:
    """A call of one tool."""
    return f'<｜DSML｜function_calls><｜DSML｜invoke name="now">{parameters}</｜DSML｜invoke></｜DSML｜function_calls>'


@pytest.mark.parametrize(("of", "answer"), [(load_v32(), ANSWER), (load_v4(), V4_ANSWER)], ids=["V3.2", "V4"])
def test_texts_are_as_written_and_other_values_json(of: CallFormat, answer: str) -> None:
    expected = ("get_weather", '{"city": "Zürich\\n\\"HB\\"", "days": 3}')
    assert read(of, answer) == ["Let me see.", expected, ("now", "{}")]


def test_calls_of_the_other_version_are_text() -> None:
    assert read(load_v32(), V4_ANSWER) == [V4_ANSWER]
    assert read(load_v4(), ANSWER) == [ANSWER]


def test_long_text_streams_as_it_comes() -> None:
    reader = load_v32().open([Tool("write", {})])
    begun = '<｜DSML｜function_calls><｜DSML｜invoke name="write"><｜DSML｜parameter name="text" string="true">line 1\nli'
    assert joined(reader.feed(begun)) == [("write", '{"text": "line 1\\nli')]


def test_what_should_be_json_and_is_not_is_a_text() -> None:
    values = "".join(
        f'<｜DSML｜parameter name="{key}" string="{kind}">{value}</｜DSML｜parameter>'
        for key, kind, value in (("a", "false", "[1]"), ("b", "false", "[1"), ("c", "true", "1"))
    )
    assert only_call(load_v32(), call(values)) == ("now", {"a": [1], "b": "[1", "c": "1"})


@pytest.mark.parametrize(
    "text",
    [
        "<｜DSML｜function_calls></｜DSML｜function_calls>",
        '<｜DSML｜function_calls><｜DSML｜invoke name="">',
        "<｜DSML｜function_calls>no",
    ],
)
def test_what_has_no_name_is_text(text: str) -> None:
    assert read(load_v32(), text) == [text]


@pytest.mark.parametrize(("of", "outer", "template"), VERSIONS)
def test_marks_are_those_that_the_template_writes(of: CallFormat, outer: str, template: str) -> None:
    written = samples.named(TEMPLATES / template).read_text(encoding="utf-8")
    written = written.replace("<' + dsml_token + '", "<｜DSML｜").replace(
        "</' + dsml_token + '", "</｜DSML｜"
    )
    grammar = of.grammar([Tool("now", {})])
    assert (grammar.trigger, grammar.closing) == (f"<｜DSML｜{outer}>", f"</｜DSML｜{outer}>")
    assert grammar.trigger in written
    for mark in (
        '<｜DSML｜invoke name="',
        '<｜DSML｜parameter name="',
        '" string="true">',
        "</｜DSML｜invoke>",
    ):
        assert mark in written
