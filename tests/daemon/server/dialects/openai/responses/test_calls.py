from __future__ import annotations

import pytest

from llmd.server.dialects.openai.responses.calls import CustomCall, FunctionCall, input_of

NAMED = {"name": "patch", "namespace": "files"}


def test_arguments_of_a_function_are_told_as_they_come() -> None:
    call = FunctionCall(NAMED)
    assert list(call.grew('{"a"')) == [("function_call_arguments.delta", {"delta": '{"a"'})]
    assert list(call.closed("{}")) == [("function_call_arguments.done", {"arguments": "{}"})]
    item = {"type": "function_call", "status": "completed", "arguments": "{}", **NAMED}
    assert call.item("{}", "completed") == item


def test_the_input_of_a_custom_tool_is_told_when_it_is_whole() -> None:
    call = CustomCall(NAMED)
    assert list(call.grew('{"input"')) == []
    assert list(call.closed('{"input":"a\\nb"}')) == [
        ("custom_tool_call_input.delta", {"delta": "a\nb"}),
        ("custom_tool_call_input.done", {"input": "a\nb"}),
    ]
    assert call.item('{"input":"a"}', "completed") == {"type": "custom_tool_call", "input": "a", **NAMED}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        ('{"input": "a \\"b\\" ü"}', 'a "b" ü'),
        ('{"inp', '{"inp'),
        ('{"input": "', ""),
        ('{"input": "a\\n', "a\n"),
        ('{"input": "a\\', "a"),
        ('{"input": "a\\\\', "a\\"),
        ('{"input": "a\\u00f', "a"),
        ('{"input": "a\\ud83d\\ude0', "a"),
        ('{"input": "a\\ud83d\\ude00', "a😀"),
        ('{"other": 1}', '{"other": 1}'),
        ("[1]", "[1]"),
    ],
)
def test_of_a_call_that_was_cut_as_much_as_came_is_its_input(arguments: str, text: str) -> None:
    assert input_of(arguments) == text
