from __future__ import annotations

import pytest

from llmd.api.parsing import Tool
from llmd.builtin.parsers.dsml import load
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
TEMPLATE = TEMPLATES / "deepseek-ai-DeepSeek-V3.2.jinja"


def call(parameters: str) -> str:
    """A call of one tool."""
    return f'<｜DSML｜function_calls><｜DSML｜invoke name="now">{parameters}</｜DSML｜invoke></｜DSML｜function_calls>'


def test_texts_are_as_written_and_other_values_json() -> None:
    expected = ("get_weather", '{"city": "Zürich\\n\\"HB\\"", "days": 3}')
    assert read(load(), ANSWER) == ["Let me see.", expected, ("now", "{}")]


def test_long_text_streams_as_it_comes() -> None:
    reader = load().open([Tool("write", {})])
    begun = '<｜DSML｜function_calls><｜DSML｜invoke name="write"><｜DSML｜parameter name="text" string="true">line 1\nli'
    assert joined(reader.feed(begun)) == [("write", '{"text": "line 1\\nli')]


def test_what_should_be_json_and_is_not_is_a_text() -> None:
    values = "".join(
        f'<｜DSML｜parameter name="{key}" string="{kind}">{value}</｜DSML｜parameter>'
        for key, kind, value in (("a", "false", "[1]"), ("b", "false", "[1"), ("c", "true", "1"))
    )
    assert only_call(load(), call(values)) == ("now", {"a": [1], "b": "[1", "c": "1"})


@pytest.mark.parametrize(
    "text",
    [
        "<｜DSML｜function_calls></｜DSML｜function_calls>",
        '<｜DSML｜function_calls><｜DSML｜invoke name="">',
        "<｜DSML｜function_calls>no",
    ],
)
def test_what_has_no_name_is_text(text: str) -> None:
    assert read(load(), text) == [text]


def test_marks_are_those_that_the_template_writes() -> None:
    written = samples.named(TEMPLATE).read_text(encoding="utf-8").replace("<' + dsml_token + '", "<｜DSML｜")
    written = written.replace("</' + dsml_token + '", "</｜DSML｜")
    grammar = load().grammar([Tool("now", {})])
    assert grammar.trigger in written
    for mark in (
        '<｜DSML｜invoke name="',
        '<｜DSML｜parameter name="',
        '" string="true">',
        "</｜DSML｜invoke>",
    ):
        assert mark in written
