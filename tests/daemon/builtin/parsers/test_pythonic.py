from __future__ import annotations

from typing import Any

import pytest

from llmd.builtin.parsers.pythonic import load
from tests.daemon.builtin.parsers.readings import only_call, read


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ('city="Zürich", days=3', {"city": "Zürich", "days": 3}),
        ("city='a)b]', days=-1.5", {"city": "a)b]", "days": -1.5}),
        ('city="say \\"(\\"",', {"city": 'say "("'}),
        ("days=[1, (2, None)], city={'a': True}", {"days": [1, [2, None]], "city": {"a": True}}),
        ("days=true, city=null", {"days": True, "city": None}),
        ('city="\\ud83d\\ude00"', {"city": "😀"}),
    ],
)
def test_arguments_are_python_literals(arguments: str, value: dict[str, Any]) -> None:
    assert only_call(load(), f"[get_weather({arguments})]") == ("get_weather", value)


@pytest.mark.parametrize(
    "answer",
    ["[get_weather(city='x'), now()]", "<|python_start|>[get_weather(city='x'),now()]<|python_end|>"],
)
def test_several_calls_stand_in_one_list(answer: str) -> None:
    assert read(load(), answer) == [("get_weather", '{"city": "x"}'), ("now", "{}")]


@pytest.mark.parametrize(
    "answer",
    [
        "[1, 2, 3]",
        "[a link](http://example.org)",
        "[other()]",
        "[now(7)]",
        "[now(x=print('x'))]",
        "[now(x=1 + 2)]",
        "[now(x=b'x')]",
        "[now(x=1e999)]",
        "[now(x=)]",
        "[now(",
        "[now(x='" + "(" * 50,
        "[now(x=" + "[" * 5000 + "]" * 5000 + ")]",
        "Call [now()]",
    ],
)
def test_lists_that_call_no_offered_tool_are_text(answer: str) -> None:
    assert read(load(), answer) == [answer]
