"""A conversation becomes the messages and fields of a request."""

from __future__ import annotations

from llmd.cli.conversation import Conversation, Turn

TURNS = [Turn("one", "1"), Turn("two", "2")]


def test_each_question_comes_with_what_was_said_before() -> None:
    said = Conversation("guide", "be brief", turns=TURNS).messages("three")
    assert [message["role"] for message in said] == [
        "system",
        *("user", "assistant"),
        *("user", "assistant"),
        "user",
    ]
    assert [message["content"] for message in said] == ["be brief", "one", "1", "two", "2", "three"]


def test_the_system_prompt_stays_when_turns_are_left_out() -> None:
    said = Conversation("guide", "be brief", turns=TURNS).messages("three", without=1)
    assert [message["content"] for message in said] == ["be brief", "two", "2", "three"]
    assert Conversation("guide").messages("one") == [{"role": "user", "content": "one"}]


def test_thinking_is_a_variable_of_the_template_under_every_name_that_families_have() -> None:
    settings: dict[str, int | float] = {"seed": 1}
    assert Conversation("guide", settings=settings).fields() == {"seed": 1}
    for thinking in (True, False):
        variables = {"enable_thinking": thinking, "thinking": thinking}
        fields = Conversation("guide", settings=settings, thinking=thinking).fields()
        assert fields == {"seed": 1, "chat_template_kwargs": variables}
