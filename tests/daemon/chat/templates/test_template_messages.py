from __future__ import annotations

from typing import Any, cast

import pytest

from llmd.api.errors import RequestError
from llmd.chat.templates.template_messages import foldings, prepare_messages

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def prepare(**message: Any) -> dict[str, Any]:
    return prepare_messages([message])[0]


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_a_line_break_stands_between_parts_of_text(role: str) -> None:
    parts = [
        {"type": "text", "text": "What is"},
        {"type": "text", "text": ""},
        {"type": "refusal", "refusal": "the best book?"},
    ]
    assert prepare(role=role, content=parts)["content"] == "What is\nthe best book?"
    assert prepare(role=role, content=parts[:2])["content"] == "What is"


def test_another_separator_is_asked_for_the_role_that_the_template_sees() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": role, "content": parts} for role in ("developer", "function")]
    prepared = prepare_messages(messages, separator=lambda role: f" {role} ")
    assert [message["content"] for message in prepared] == ["a system b", "a tool b"]


def test_null_absent_and_empty_content_of_calls_are_the_same() -> None:
    calling = {"role": "assistant", "tool_calls": [CALL]}
    assert prepare(**calling, content=None) == prepare(**calling) == prepare(**calling, content="")
    assert prepare(**calling)["content"] == ""


def test_developer_is_system_unless_the_template_knows_it() -> None:
    message = {"role": "developer", "content": "x"}
    assert prepare_messages([message])[0]["role"] == "system"
    assert prepare_messages([message], keep_developer=True)[0]["role"] == "developer"


def test_arguments_become_objects() -> None:
    empty = {"function": {"name": "now", "arguments": ""}}
    calls = prepare(role="assistant", tool_calls=[CALL, empty])["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == [{"a": 1}, {}]
    assert CALL["function"] == {"name": "add", "arguments": '{"a": 1}'}


def test_call_of_the_old_form_becomes_one_of_the_new() -> None:
    message = prepare(role="assistant", content=None, function_call={"name": "add", "arguments": '{"a": 1}'})
    (call,) = message["tool_calls"]
    assert call == {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    assert "function_call" not in message


def test_tool_message_gets_the_name_of_what_was_called() -> None:
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
    prepared = prepare_messages(
        [{"role": "assistant", "tool_calls": [CALL]}, answer, {**answer, "name": "own"}]
    )
    assert [message.get("name") for message in prepared] == [None, "add", "own"]


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_is_found_under_each_of_its_names(key: str) -> None:
    message = prepare(role="assistant", content="4", **{key: "two and two"})
    reasoning = dict.fromkeys(("reasoning_content", "thinking"), "two and two")
    assert message == {"role": "assistant", "content": "4", **reasoning}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"content": "x"}, "messages[0].role"),
        ({"role": 7}, "messages[0].role"),
        ({"role": "user", "content": 7}, "messages[0].content"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "messages[0].content[0]"),
        ({"role": "user", "content": ["text"]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": ["text"]}]}, "messages[0].content[0]"),
        ({"role": "tool", "content": "x", "tool_call_id": ["call_1"]}, "messages[0].tool_call_id"),
        ({"role": "assistant", "tool_calls": [{**CALL, "id": {}}]}, "messages[0].tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": {}}, "messages[0].tool_calls"),
        ({"role": "assistant", "function_call": "add"}, "messages[0].function_call"),
        ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls[0]"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": "{"}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": "[1]"}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": 7}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_malformed_message_is_refused_with_its_place(message: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        prepare_messages([message])
    assert caught.value.param == param
    assert caught.value.hint


def test_message_that_is_no_object_is_refused() -> None:
    with pytest.raises(RequestError, match="role is None"):
        prepare_messages(cast("list[dict[str, Any]]", ["hello"]))


def test_conversation_without_messages_is_refused() -> None:
    with pytest.raises(RequestError, match="no messages"):
        prepare_messages([])


def roles_and_texts(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def test_late_system_messages_fold_into_the_first_then_into_the_user() -> None:
    messages = [
        {"role": role, "content": text} for role, text in (("user", "u"), ("system", "a"), ("system", "b"))
    ]
    forms = [roles_and_texts(form) for form in foldings(messages)]
    assert forms[1:] == [[("system", "a\n\nb"), ("user", "u")], [("user", "a\n\nb\n\nu")]]


def test_single_system_message_folds_into_the_first_user_message() -> None:
    messages = [
        {"role": "system", "content": ""},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "u"},
    ]
    assert [roles_and_texts(form) for form in foldings(messages)][1:] == [[("assistant", "x"), ("user", "u")]]


def test_system_message_alone_becomes_a_user_message() -> None:
    assert list(foldings([{"role": "system", "content": "s"}]))[1:] == [[{"role": "user", "content": "s"}]]


def test_conversation_without_system_messages_has_one_form() -> None:
    messages = [{"role": "user", "content": "u"}]
    assert list(foldings(messages)) == [messages]


def test_text_beside_calls_may_become_reasoning() -> None:
    call = {"id": "1", "function": {"name": "now", "arguments": {}}}
    messages = prepare_messages(
        [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "I look.", "thinking": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "12:00"},
            {"role": "assistant", "content": "Noon.", "thinking": "So."},
        ]
    )
    plain, folded = foldings(messages)
    assert plain == messages
    assert [(message["content"], message.get("thinking")) for message in folded] == [
        ("u", None),
        ("", "Hm.\n\nI look."),
        ("12:00", None),
        ("Noon.", "So."),
    ]
