from __future__ import annotations

from llmd.builtin.parsers.nemotron import load
from tests.daemon.builtin.parsers.readings import read

ANSWER = (
    'I look.\n<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Ōtsu"}}, '
    '{"name": "now", "arguments": {}}]</TOOLCALL>\n'
)
CALLS = ["I look.", ("get_weather", '{"city": "Ōtsu"}'), ("now", "{}")]


def test_calls_are_a_list_between_the_marks() -> None:
    assert read(load(), ANSWER) == CALLS


def test_arguments_may_be_a_string_that_contains_json() -> None:
    answer = '<TOOLCALL>[{"name": "get_weather", "arguments": "{\\"city\\": \\"x\\"}"}]</TOOLCALL>'
    assert read(load(), answer) == [("get_weather", '{"city": "x"}')]
