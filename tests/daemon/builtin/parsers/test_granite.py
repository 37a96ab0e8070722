from __future__ import annotations

import pytest

from llmd.builtin.parsers.granite import load
from tests.daemon.builtin.parsers.readings import read


@pytest.mark.parametrize("mark", ["<|tool_call|>", "<tool_call>"])
def test_calls_are_a_list_after_the_mark(mark: str) -> None:
    answer = f'{mark}[{{"name": "get_weather", "arguments": {{"city": "x"}}}}, {{"name": "now", "arguments": {{}}}}]'
    assert read(load(), answer) == [("get_weather", '{"city": "x"}'), ("now", "{}")]


def test_text_before_the_calls_is_kept() -> None:
    assert read(load(), 'Well.\n<|tool_call|>[{"name": "now"}]\n') == ["Well.", ("now", "{}")]
