from __future__ import annotations

from llmd.builtin.parsers.hermes import load
from tests.daemon.builtin.parsers.readings import read

ANSWER = """\
I will look.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}
</tool_call>
<tool_call>
{"name": "now", "arguments": {}}
</tool_call>
"""
CALLS = [("get_weather", '{"city": "Zürich", "days": 2}'), ("now", "{}")]


def test_calls_stand_each_in_its_tags() -> None:
    assert read(load(), ANSWER) == ["I will look.", *CALLS]


def test_missing_end_tag_costs_nothing() -> None:
    assert read(load(), ANSWER.replace("</tool_call>", "")) == ["I will look.", *CALLS]


def test_tag_in_a_sentence_is_text() -> None:
    text = "Write <tool_call> and then JSON."
    assert read(load(), text) == [text]


def test_unknown_tool_is_called_all_the_same() -> None:
    assert read(load(), '<tool_call>{"name": "other"}</tool_call>') == [("other", "{}")]
