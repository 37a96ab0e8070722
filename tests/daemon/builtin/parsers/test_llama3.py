from __future__ import annotations

import pytest

from llmd.builtin.parsers.llama3 import load
from tests.daemon.builtin.parsers.readings import read

CALL = '{"name": "get_weather", "parameters": {"city": "x"}}'


@pytest.mark.parametrize("answer", [CALL, f"\n\n{CALL}", f"<|python_tag|>{CALL}"])
def test_call_is_the_answer(answer: str) -> None:
    assert read(load(), answer) == [("get_weather", '{"city": "x"}')]


def test_calls_are_separated_by_semicolons() -> None:
    answer = f'{CALL}; {{"name": "now", "parameters": {{}}}}'
    assert read(load(), answer) == [("get_weather", '{"city": "x"}'), ("now", "{}")]


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Ada", "age": 36}',
        '{"name": "other", "parameters": {}}',
        f"The call is {CALL}",
        '<|python_tag|>brave_search.call(query="x")',
        "{",
    ],
)
def test_json_that_calls_no_offered_tool_is_text(answer: str) -> None:
    assert read(load(), answer) == [answer]
