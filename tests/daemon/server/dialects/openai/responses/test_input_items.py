from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.templates.template_messages import prepare_messages
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.responses.input_items import Input, given_items, read_items

CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "hm"}],
}


def said(text: str, role: str = "user", kind: str = "input_text") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def read(*items: Any) -> Input:
    return read_items(items)


def test_a_text_is_a_message_of_the_user() -> None:
    items = given_items(RequestFields({"input": "Hi"}))
    assert read_items(items).messages == ({"role": "user", "content": "Hi"},)


def test_messages_need_no_type_and_their_content_may_be_a_string() -> None:
    assert read({"role": "user", "content": "Hi"}) == read(said("Hi"))


def test_several_texts_stay_parts() -> None:
    parts = [{"type": kind, "text": text} for kind, text in (("input_text", "a"), ("text", "b"))]
    kept = [{"type": "text", "text": text} for text in "ab"]
    for role in ("system", "developer", "user", "assistant"):
        assert read({"role": role, "content": parts}).messages[0]["content"] == kept
    assert read(said("a"), CALL, {**RESULT, "output": parts}).messages[2]["content"] == kept


def test_messages_of_the_assistant_in_a_row_are_parts_of_one() -> None:
    parts = [{"type": "output_text", "text": text} for text in "bc"]
    messages = read(said("Hi"), said("a", "assistant"), {"role": "assistant", "content": parts}).messages
    assert messages[1]["content"] == [{"type": "text", "text": text} for text in "abc"]
    thoughts = [{**THOUGHT, "content": [{"type": "reasoning_text", "text": text}]} for text in "xy"]
    assert read(said("Hi"), *thoughts).messages[1]["reasoning_content"] == "x\ny"


def test_a_refusal_is_text() -> None:
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert read(said("Hi"), refusal).messages[1]["content"] == "No."


def test_reasoning_text_and_calls_in_a_row_are_one_message() -> None:
    second = {**CALL, "call_id": "call_2"}
    items = (said("Look"), THOUGHT, said("I look.", "assistant", "output_text"), CALL, second, RESULT)
    messages = read(*items).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[1] == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
            for i in ("call_1", "call_2")
        ],
    }
    assert prepare_messages(messages)[2]["name"] == "read"


def test_what_follows_calls_is_a_new_message() -> None:
    messages = read(said("Look"), CALL, said("Done.", "assistant")).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "assistant"]


def test_a_summary_stands_for_reasoning_without_text() -> None:
    item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "x",
    }
    assert read(said("a"), item, CALL, RESULT).messages[1]["reasoning_content"] == "hm"
    nothing = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    assert "reasoning_content" not in read(said("a"), nothing, CALL, RESULT).messages[1]


def test_outputs_may_be_parts() -> None:
    result = {**RESULT, "output": [{"type": "input_text", "text": "found"}]}
    assert read(said("a"), CALL, result).messages[2] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "found",
    }


def test_calls_of_the_shell_and_custom_tools_are_calls_too() -> None:
    action = {"type": "exec", "command": ["ls"]}
    shell = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": action}
    shown = {"type": "local_shell_call_output", "id": "call_1", "output": "a"}
    custom = {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin"}
    patched = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"}
    messages = prepare_messages(read(said("a"), shell, shown, custom, patched).messages)
    calls = [m["tool_calls"][0]["function"] for m in messages if "tool_calls" in m]
    assert calls[0] == {"name": "local_shell", "arguments": action}
    assert calls[1] == {"name": "patch", "arguments": {"input": "*** Begin"}}
    assert [m["name"] for m in messages if m["role"] == "tool"] == ["local_shell", "patch"]


def test_items_of_hosted_tools_are_skipped_and_said() -> None:
    found = read(said("a"), {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    assert found.skipped == ("input[1].web_search_call",)
    assert len(found.messages) == 1


def test_an_item_of_tools_is_no_message_and_is_not_skipped() -> None:
    found = read({"type": "additional_tools", "role": "developer", "tools": []}, said("a"))
    assert (len(found.messages), found.skipped) == (1, ())


@pytest.mark.parametrize("value", [None, 5, [], {}])
def test_input_is_demanded(value: object) -> None:
    with pytest.raises(BadRequestError) as caught:
        given_items(RequestFields({"input": value}))
    assert caught.value.param == "input"


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ("Hi", "input[0]"),
        ({"role": "tool", "content": "x"}, "input[0].role"),
        ({"content": "x"}, "input[0].role"),
        ({"role": "user", "content": 5}, "input[0].content"),
        ({"role": "user"}, "input[0].content"),
        ({"role": "assistant", "content": []}, "input[0].content"),
        ({**RESULT, "output": None}, "input[0].output"),
        ({"role": "user", "content": ["x"]}, "input[0].content[0]"),
        ({"role": "user", "content": [{"type": ["input_text"]}]}, "input[0].content[0]"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[0].content[0].text"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}, "input[0].content[0]"),
        ({**CALL, "arguments": {}}, "input[0].arguments"),
        ({**CALL, "call_id": None}, "input[0].call_id"),
        ({**RESULT, "output": 5}, "input[0].output"),
        ({"type": "item_reference", "id": "msg_1"}, "input[0]"),
        ({"type": "web_search_call"}, "input"),
    ],
)
def test_malformed_items_are_refused_by_their_place(item: object, param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(item)
    assert caught.value.param == param


def test_a_misspelt_key_is_named_with_the_nearest_one() -> None:
    with pytest.raises(BadRequestError, match="its key 'contnet' is unknown; did you mean 'content'"):
        read({"role": "user", "contnet": "Hi"})
    with pytest.raises(BadRequestError, match="its key 'outputs' is unknown; did you mean 'output'"):
        read(said("a"), CALL, {"type": "function_call_output", "call_id": "call_1", "outputs": "x"})


def test_unknown_keys_are_ignored_and_named() -> None:
    assert read({**said("a"), "odd": 1}).skipped == ("input[0].odd",)


def test_a_tool_may_give_nothing() -> None:
    assert read(said("a"), CALL, {**RESULT, "output": []}).messages[2]["content"] == ""
