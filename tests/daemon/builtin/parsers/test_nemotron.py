from __future__ import annotations

import pytest

from llmd.builtin.parsers.nemotron import load
from tests.daemon.builtin.parsers.readings import TOOLS, joined, read, run

ANSWER = (
    'I look.\n<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Ōtsu"}}, '
    '{"name": "now", "arguments": {}}]</TOOLCALL>\n'
)
CALLS = ["I look.", ("get_weather", '{"city": "Ōtsu"}'), ("now", "{}")]


def test_calls_are_a_list_between_the_marks() -> None:
    assert read(load(), ANSWER) == CALLS


@pytest.mark.parametrize("cut", range(1, len(ANSWER)))
def test_a_recorded_answer_is_read_in_every_cut(cut: int) -> None:
    parts = joined(run(load().open(TOOLS), [ANSWER[:cut], ANSWER[cut:]]))
    assert [part for part in parts if isinstance(part, tuple)] == CALLS[1:]
    assert "".join(part for part in parts if isinstance(part, str)).strip() == CALLS[0]


def test_arguments_may_be_a_string_that_contains_json() -> None:
    answer = '<TOOLCALL>[{"name": "get_weather", "arguments": "{\\"city\\": \\"x\\"}"}]</TOOLCALL>'
    assert read(load(), answer) == [("get_weather", '{"city": "x"}')]
