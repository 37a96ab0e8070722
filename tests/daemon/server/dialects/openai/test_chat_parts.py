from __future__ import annotations

from typing import Any

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.server.dialects.openai.chat_calls import CallDeltas, CallForms
from llmd.server.dialects.openai.chat_parts import PLAIN, deltas_of, finish_of, last_deltas, message_of

CALLS: list[AnswerPart] = [
    CallStart(0, "now"),
    CallArguments(0, "{}"),
    CallStart(1, "add"),
    CallArguments(1, '{"a":'),
    CallArguments(1, " 1}"),
]


OLD = CallForms(is_legacy=True)


def deltas(*parts: AnswerPart, forms: CallForms = PLAIN) -> list[dict[str, Any]]:
    return list(deltas_of(parts, CallDeltas(forms)))


def without_id(call: dict[str, Any]) -> dict[str, Any]:
    assert call["id"].startswith("call_")
    return {key: value for key, value in call.items() if key != "id"}


def test_reasoning_has_both_names() -> None:
    both = {"reasoning": "hm", "reasoning_content": "hm"}
    assert deltas(Reasoning("hm")) == [both]
    assert message_of([Reasoning("h"), Reasoning("m"), Text("4")]) == {
        "role": "assistant",
        "content": "4",
        "refusal": None,
        **both,
    }


def test_call_begins_with_id_and_name_and_goes_on_with_arguments_alone() -> None:
    begin, more = deltas(*CALLS[2:4])
    (call,) = begin["tool_calls"]
    assert without_id(call) == {"index": 1, "type": "function", "function": {"name": "add", "arguments": ""}}
    assert more == {"tool_calls": [{"index": 1, "function": {"arguments": '{"a":'}}]}


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
    assert deltas(*CALLS[:2], forms=OLD) == [
        {"function_call": {"name": "now", "arguments": ""}},
        {"function_call": {"arguments": "{}"}},
    ]
    message = message_of(CALLS[:2], OLD)
    assert message["function_call"] == {"name": "now", "arguments": "{}"}
    assert "tool_calls" not in message


def test_answer_with_calls_ends_for_them() -> None:
    assert finish_of("stop", has_calls=True) == "tool_calls"
    assert finish_of("stop", has_calls=True, is_legacy=True) == "function_call"
    assert finish_of("stop", has_calls=False) == "stop"
    assert finish_of("length", has_calls=True) == "length"
    assert finish_of(None, has_calls=True) is None


PATCH = CallForms(frozenset({"patch"}))
PATCHED: list[AnswerPart] = [
    CallStart(0, "patch"),
    CallArguments(0, '{"input": '),
    CallArguments(0, '"a\\'),
    CallArguments(0, 'nb"}'),
    CallStart(1, "now"),
    CallArguments(1, "{}"),
]


def test_calls_of_custom_tools_have_their_input_as_text() -> None:
    first, second = message_of(PATCHED, PATCH)["tool_calls"]
    assert without_id(first) == {"type": "custom", "custom": {"name": "patch", "input": "a\nb"}}
    assert without_id(second) == {"type": "function", "function": {"name": "now", "arguments": "{}"}}


def test_the_input_of_a_custom_tool_streams_as_text() -> None:
    calls = [delta["tool_calls"][0] for delta in deltas(*PATCHED, forms=PATCH)]
    assert without_id(calls[0]) == {"index": 0, "type": "custom", "custom": {"name": "patch", "input": ""}}
    assert calls[1:3] == [{"index": 0, "custom": {"input": text}} for text in ("a", "\nb")]
    assert [call["index"] for call in calls[3:]] == [1, 1]


def test_what_is_told_only_at_the_end_of_a_call_comes_before_the_next_and_with_the_last() -> None:
    odd: list[AnswerPart] = [CallStart(0, "patch"), CallArguments(0, "[1]"), CallStart(1, "patch")]
    writer = CallDeltas(PATCH)
    found = [*deltas_of([*odd, CallArguments(1, "[2]")], writer), *last_deltas(writer)]
    calls = [delta["tool_calls"][0] for delta in found]
    told = [(call["index"], call["custom"]["input"]) for call in calls]
    assert told == [(0, ""), (0, "[1]"), (1, ""), (1, "[2]")]
