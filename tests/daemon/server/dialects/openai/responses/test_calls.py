from __future__ import annotations

from llmd.server.dialects.openai.responses.calls import CustomCall, FunctionCall

NAMED = {"name": "patch", "namespace": "files"}


def test_arguments_of_a_function_are_told_as_they_come() -> None:
    call = FunctionCall(NAMED)
    assert list(call.grew('{"a"')) == [("function_call_arguments.delta", {"delta": '{"a"'})]
    assert list(call.closed("{}")) == [("function_call_arguments.done", {"arguments": "{}"})]
    item = {"type": "function_call", "status": "completed", "arguments": "{}", **NAMED}
    assert call.item("{}", "completed") == item


def test_the_input_of_a_custom_tool_is_told_as_it_comes() -> None:
    call = CustomCall(NAMED)
    assert list(call.grew('{"input":"a\\')) == [("custom_tool_call_input.delta", {"delta": "a"})]
    assert list(call.grew('nb"')) == [("custom_tool_call_input.delta", {"delta": "\nb"})]
    assert list(call.grew("}")) == []
    whole = '{"input":"a\\nb"}'
    assert list(call.closed(whole)) == [("custom_tool_call_input.done", {"input": "a\nb"})]
    assert call.item(whole, "completed") == {"type": "custom_tool_call", "input": "a\nb", **NAMED}


def test_what_is_no_text_is_told_at_the_end() -> None:
    assert list(CustomCall(NAMED).closed("[1]")) == [
        ("custom_tool_call_input.delta", {"delta": "[1]"}),
        ("custom_tool_call_input.done", {"input": "[1]"}),
    ]
