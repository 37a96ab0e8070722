from __future__ import annotations

import json
import shlex

from llmd_tui.screens.chat.request_body import as_curl, chat_body, sent, streamed
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Message, Settings

PATH = (
    Message(1, None, "user", Content("one")),
    Message(2, 1, "assistant", Content("first")),
    Message(3, 2, "user", Content("two")),
    Message(4, 3, "assistant", Content("", ending="failed")),
    Message(5, 4, "user", Content("three")),
)


def test_a_request_has_the_system_prompt_the_branch_and_the_draft() -> None:
    body = chat_body(Settings(model="guide", system="be brief"), PATH[:2], draft=Content("two"))
    assert body == {
        "model": "guide",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "first"},
            {"role": "user", "content": "two"},
        ],
    }


def test_settings_are_fields_only_if_they_are_set() -> None:
    settings = Settings(model="guide", temperature=0.0, seed=7, thinking=False, schema={"type": "object"})
    body = chat_body(settings, PATH[:1])
    assert (body["temperature"], body["seed"]) == (0.0, 7)
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": {"type": "object"}}
    assert "top_p" not in body


CALL = Call("weather", '{"city": "Oslo"}', "call_1")
WITH_CALL = (
    Message(1, None, "user", Content("how is it?")),
    Message(2, 1, "assistant", Content(calls=(CALL,))),
    Message(3, 2, "tool", Content("rain", calls=(CALL,))),
    Message(4, 3, "assistant", Content(ending="stopped")),
    Message(5, 4, "user", Content("and now?")),
)


def test_calls_of_tools_and_their_results_are_sent() -> None:
    tool = {"type": "function", "function": {"name": "weather"}}
    body = chat_body(Settings(tools=(tool,)), WITH_CALL[:3])
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert body["tools"] == [tool]
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
    ]


def test_a_question_without_an_answer_is_left_out_with_the_calls_after_it() -> None:
    assert [one.message_id for one in sent(WITH_CALL)] == [5]
    assert [one.message_id for one in sent(WITH_CALL[:3])] == [1, 2, 3]


def test_questions_without_an_answer_are_not_sent_again() -> None:
    assert [one.message_id for one in sent(PATH)] == [1, 2, 5]
    assert [one.message_id for one in sent(PATH[:3])] == [1, 2, 3]


def test_dropped_messages_are_not_sent() -> None:
    assert [one.message_id for one in sent(PATH, first=3)] == [5]
    assert sent(PATH, first=6) == []


def test_attached_files_are_part_of_the_message() -> None:
    draft = Content("why?", attachments=(Attachment("a.txt", "text"),))
    assert (
        chat_body(Settings(), (), draft=draft)["messages"][0]["content"] == "a.txt:\n```\ntext\n```\n\nwhy?"
    )


def test_usage_is_asked_for_with_the_stream() -> None:
    assert streamed({"model": "guide"}) == {
        "model": "guide",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_curl_command_sends_the_same_body() -> None:
    body = chat_body(Settings(model="guide"), (), draft=Content("what's 'this'?"))
    for address, target in (
        ("unix:/run/my socket", ["--unix-socket", "/run/my socket", "http://llmd/v1/chat/completions"]),
        ("http://127.0.0.1:8642", ["http://127.0.0.1:8642/v1/chat/completions"]),
    ):
        words = shlex.split(as_curl(body, address))
        assert words[:-4] == ["curl", *target]
        assert json.loads(words[-1]) == body
