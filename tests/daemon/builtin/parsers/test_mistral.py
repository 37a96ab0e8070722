from __future__ import annotations

import pytest

from llmd.builtin.parsers.mistral import load, load_v11
from tests.daemon.builtin.parsers.readings import read


def test_calls_are_a_list_after_the_mark() -> None:
    answer = '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "x"}, "id": "VvvODy9mT"}, {"name": "now"}]'
    assert read(load(), answer) == [("get_weather", '{"city": "x"}'), ("now", "{}")]


@pytest.mark.parametrize(
    "answer",
    [
        'Sure. [TOOL_CALLS]get_weather[ARGS]{"city": "x"}[TOOL_CALLS]now[ARGS]{}',
        'Sure.[TOOL_CALLS]get_weather[CALL_ID]VvvODy9mT[ARGS]{"city": "x"}\n[TOOL_CALLS]now[ARGS]{}',
        'Sure.[TOOL_CALLS]get_weather{"city": "x"}[TOOL_CALLS]now {}',
    ],
)
def test_newer_models_write_name_and_arguments_each_after_its_mark(answer: str) -> None:
    for form in (load(), load_v11()):
        assert read(form, answer) == ["Sure.", ("get_weather", '{"city": "x"}'), ("now", "{}")]


@pytest.mark.parametrize("answer", ["[TOOL_CALLS]", "[TOOL_CALLS] none", "[TOOL_CALLS]now[ARGS]7"])
def test_mark_without_a_call_is_text(answer: str) -> None:
    assert read(load(), answer) == [answer]
