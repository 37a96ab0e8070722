from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.templates.template_messages import prepare_messages
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.anthropic.conversation import Conversation, read_conversation

CALL = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if content and isinstance(content[0], str) else [*content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def read(*messages: dict[str, Any], **fields: Any) -> Conversation:
    return read_conversation(RequestFields({"messages": [*messages], **fields}))


def test_strings_and_blocks_of_text_say_the_same() -> None:
    assert read(user("Hi"), system="Be short.") == read(user(text("Hi")), system=[text("Be short.")])
    assert read(user("Hi"), system="Be short.").messages == (
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hi"},
    )


def test_blocks_are_paragraphs_and_an_empty_system_is_none() -> None:
    assert read(user(text("a"), text("b"))).messages[0]["content"] == "a\n\nb"
    assert read(user("a"), system=[text("x"), text("y")]).messages[0]["content"] == "x\n\ny"
    assert len(read(user("a"), system="").messages) == 1


def test_system_messages_may_stand_anywhere() -> None:
    roles = [message["role"] for message in read(user("a"), {"role": "system", "content": "b"}).messages]
    assert roles == ["user", "system"]


def test_results_of_tools_come_before_the_rest_of_their_message() -> None:
    second = {**RESULT, "tool_use_id": "toolu_2", "content": [text("x"), text("y")]}
    calls = assistant(text("I look."), CALL, {**CALL, "id": "toolu_2"})
    messages = read(user("Look"), calls, user(text("Well?"), RESULT, second)).messages
    assert messages[1]["tool_calls"][0] == {
        "id": "toolu_1",
        "type": "function",
        "function": {"name": "read", "arguments": {"path": "a"}},
    }
    assert messages[2:] == (
        {"role": "tool", "tool_call_id": "toolu_1", "content": "found"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "x\n\ny"},
        {"role": "user", "content": "Well?"},
    )
    assert prepare_messages(messages)[2]["name"] == "read"


def test_a_failed_tool_is_told_as_such_and_a_silent_one_is_empty() -> None:
    failed = {**RESULT, "is_error": True}
    silent = {"type": "tool_result", "tool_use_id": "toolu_1"}
    contents = [m["content"] for m in read(user(failed), user(silent)).messages]
    assert contents == ["Error: found", ""]


def test_messages_of_one_role_in_a_row_are_one() -> None:
    assert read(user("a"), user(text("b"))).messages == ({"role": "user", "content": "a\n\nb"},)
    think = {"type": "thinking", "thinking": "hm", "signature": "x"}
    one, two = assistant(think, text("a"), CALL), assistant(think, text("b"), {**CALL, "id": "toolu_2"})
    (joined, *_) = read(one, two, user(RESULT)).messages
    assert (joined["content"], joined["reasoning_content"]) == ("ab", "hmhm")
    assert [call["id"] for call in joined["tool_calls"]] == ["toolu_1", "toolu_2"]


def test_reasoning_of_earlier_turns_reaches_the_template_and_what_is_unreadable_is_said() -> None:
    blocks = (
        {"type": "thinking", "thinking": "hm", "signature": "anything"},
        {"type": "redacted_thinking", "data": "AA"},
        {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}},
        text("Hi"),
    )
    conversation = read(user("a"), assistant(*blocks), user("b"))
    assert conversation.messages[1]["reasoning_content"] == "hm"
    assert conversation.skipped == (
        "messages.1.content.1.redacted_thinking",
        "messages.1.content.2.server_tool_use",
    )


def test_an_assistants_message_at_the_end_is_continued() -> None:
    open_end = read(user("a"), assistant("Well")).prompt()
    assert (open_end.add_generation_prompt, open_end.continue_final_message) == (False, True)
    closed = read(user("a")).prompt()
    assert (closed.add_generation_prompt, closed.continue_final_message) == (True, False)


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ([], "messages"),
        ("Hi", "messages"),
        (["Hi"], "messages.0.role"),
        ([{"role": "tool", "content": "x"}], "messages.0.role"),
        ([{"role": "user", "content": 5}], "messages.0.content"),
        ([{"role": "user"}], "messages.0.content"),
        ([{"role": "user", "content": []}], "messages.0.content"),
        ([user({"type": "tool_result"})], "messages.0.content.0.tool_use_id"),
        ([user("a"), assistant({**CALL, "input": "x"}), user(RESULT)], "messages.1.content.0.input"),
        ([user("a"), assistant({**CALL, "id": None}), user(RESULT)], "messages.1.content.0.id"),
        ([user("a"), assistant(CALL)], "messages.1"),
    ],
)
def test_malformed_conversations_are_refused_by_their_place(messages: object, param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_conversation(RequestFields({"messages": messages}))
    assert caught.value.param == param


def test_a_misspelt_key_is_named_with_the_nearest_one() -> None:
    with pytest.raises(
        BadRequestError, match="its key 'contents' is unknown; did you mean 'content'"
    ) as caught:
        read({"role": "user", "contents": "Hi"})
    assert caught.value.param == "messages.0.content"
    with pytest.raises(BadRequestError, match="did you mean 'role'"):
        read({"rol": "user", "content": "Hi"})


def test_unknown_keys_are_ignored_and_named() -> None:
    messages = [{**user("a"), "odd": 1}]
    assert read_conversation(RequestFields({"messages": messages})).skipped == ("messages.0.odd",)


def test_an_assistant_may_have_said_nothing() -> None:
    assert read(user("a"), {"role": "assistant", "content": []}).messages[1]["content"] == ""
