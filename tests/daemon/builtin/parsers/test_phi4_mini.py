from __future__ import annotations

import pytest

from llmd.builtin.parsers.phi4_mini import load
from tests.daemon.builtin.parsers.readings import read

LIST = '[{"name": "get_weather", "arguments": {"city": "x"}}, {"name": "now", "arguments": {}}]'


@pytest.mark.parametrize("answer", [f"<|tool_call|>{LIST}<|/tool_call|>", f"functools{LIST}"])
def test_calls_are_a_list_in_tags_or_after_a_word(answer: str) -> None:
    assert read(load(), answer) == [("get_weather", '{"city": "x"}'), ("now", "{}")]


def test_the_word_alone_is_text() -> None:
    text = "Use functools and its partial."
    assert read(load(), text) == [text]
