from __future__ import annotations

from typing import Any

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.server.dialects.openai.chat_parts import delta_of, finish_of, message_of

CALLS: list[AnswerPart] = [
    CallStart(0, "now"),
    CallArguments(0, "{}"),
    CallStart(1, "add"),
    CallArguments(1, '{"a":'),
    CallArguments(1, " 1}"),
]


def without_id(call: dict[str, Any]) -> dict[str, Any]:
    assert call["id"].startswith("call_")
    return {key: value for key, value in call.items() if key != "id"}


def test_reasoning_has_both_names() -> None:
    both = {"reasoning": "hm", "reasoning_content": "hm"}
    assert delta_of(Reasoning("hm")) == both
    assert message_of([Reasoning("h"), Reasoning("m"), Text("4")]) == {
        "role": "assistant",
        "content": "4",
        "refusal": None,
        **both,
    }


def test_call_begins_with_id_and_name_and_goes_on_with_arguments_alone() -> None:
    (begin,) = delta_of(CALLS[2])["tool_calls"]
    assert without_id(begin) == {"index": 1, "type": "function", "function": {"name": "add", "arguments": ""}}
    assert delta_of(CALLS[3]) == {"tool_calls": [{"index": 1, "function": {"arguments": '{"a":'}}]}


def test_calls_of_a_whole_answer_have_ids_of_their_own() -> None:
    message = message_of(CALLS)
    assert message["content"] is None
    assert len({call["id"] for call in message["tool_calls"]}) == 2
    assert [without_id(call)["function"] for call in message["tool_calls"]] == [
        {"name": "now", "arguments": "{}"},
        {"name": "add", "arguments": '{"a": 1}'},
    ]


def test_text_beside_calls_is_kept_and_an_answer_without_calls_does_not_name_them() -> None:
    assert message_of([Text("Look: "), *CALLS])["content"] == "Look: "
    assert message_of([Text("4")]) == {"role": "assistant", "content": "4", "refusal": None}
    assert message_of([])["content"] == ""


def test_call_of_old_is_one_function_call() -> None:
    assert delta_of(CALLS[0], is_legacy=True) == {"function_call": {"name": "now", "arguments": ""}}
    assert delta_of(CALLS[1], is_legacy=True) == {"function_call": {"arguments": "{}"}}
    message = message_of(CALLS[:2], is_legacy=True)
    assert message["function_call"] == {"name": "now", "arguments": "{}"}
    assert "tool_calls" not in message


def test_answer_with_calls_ends_for_them() -> None:
    assert finish_of("stop", has_calls=True) == "tool_calls"
    assert finish_of("stop", has_calls=True, is_legacy=True) == "function_call"
    assert finish_of("stop", has_calls=False) == "stop"
    assert finish_of("length", has_calls=True) == "length"
    assert finish_of(None, has_calls=True) is None
