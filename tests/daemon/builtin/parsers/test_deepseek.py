from __future__ import annotations

import pytest

from llmd.builtin.parsers.deepseek import load_v3, load_v31
from tests.daemon.builtin.parsers.readings import read

V3 = (
    "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
    '```json\n{"city": "x"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n'
    "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
V31 = (
    'I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "x"}<｜tool▁call▁end｜>'
    "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)


@pytest.mark.parametrize("answer", [V3, V31])
def test_both_generations_are_read(answer: str) -> None:
    for form in (load_v3(), load_v31()):
        assert read(form, answer) == ["I look.", ("get_weather", '{"city": "x"}'), ("now", "{}")]


def test_call_without_a_name_is_text() -> None:
    text = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>{}"
    assert read(load_v31(), text) == [text]
