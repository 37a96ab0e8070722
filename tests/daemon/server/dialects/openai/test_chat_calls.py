from __future__ import annotations

from llmd.server.dialects.openai.chat_calls import CallDeltas, CallForms, with_functions


def test_a_cut_call_of_a_custom_tool_has_as_much_input_as_came() -> None:
    forms = CallForms(frozenset({"patch"}))
    assert forms.whole("patch", '{"input": "a')["custom"] == {"name": "patch", "input": "a"}
    deltas = CallDeltas(forms)
    assert "tool_calls" in deltas.start(0, "patch")
    assert deltas.more(0, '{"input": "') is None
    assert deltas.more(0, "a") == {"tool_calls": [{"index": 0, "custom": {"input": "a"}}]}
    assert deltas.rest() is None


def test_calls_of_custom_tools_in_the_history_are_functions_to_the_model() -> None:
    function = {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    custom = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "a\n"}}
    message = {"role": "assistant", "tool_calls": [custom, function]}
    first, second = with_functions(message)["tool_calls"]
    assert first == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "patch", "arguments": '{"input": "a\\n"}'},
    }
    assert second == function
    for kept in ({"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": "odd"}):
        assert with_functions(kept) == kept
