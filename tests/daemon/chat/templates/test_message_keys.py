from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.templates.message_keys import CHAT_KEYS, misspelt, require_content, unknown_keys

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
@pytest.mark.parametrize("content", [{}, {"content": None}, {"contnet": "Hi"}])
def test_a_message_without_content_is_refused(role: str, content: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"^messages\[2\] has no content") as caught:
        require_content({"role": role, **content}, "messages[2]")
    assert caught.value.param == "messages[2].content"
    assert ("did you mean 'content'?" in caught.value.hint) == ("contnet" in content)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_an_empty_list_is_no_content(role: str) -> None:
    with pytest.raises(RequestError, match="no content"):
        require_content({"role": role, "content": []}, "messages[0]")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ""},
        {"role": "tool", "content": []},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": None, "function_call": CALL["function"]},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "thinking": "hm"},
        {"role": "assistant", "reasoning_content": ""},
    ],
    ids=str,
)
def test_what_says_something_passes(message: dict[str, Any]) -> None:
    require_content(message, "messages[0]")


def test_calls_and_reasoning_are_an_assistants_alone() -> None:
    with pytest.raises(RequestError, match="no content"):
        require_content({"role": "user", "tool_calls": [CALL]}, "messages[0]")


def test_the_nearest_key_is_named() -> None:
    assert misspelt({"role": "user", "contents": "a"}, CHAT_KEYS) == (
        "its key 'contents' is unknown; did you mean 'content'?"
    )
    assert misspelt({"role": "assistant", "tool_call": []}, CHAT_KEYS).endswith("did you mean 'tool_calls'?")
    assert misspelt({"role": "user", "xyzzy": 1}, ("role", "content")) == (
        "its key 'xyzzy' is unknown; known keys are role, content"
    )
    assert misspelt({"role": "user", "content": "a", "name": "b"}, CHAT_KEYS) == ""


def test_each_unknown_key_is_named_once() -> None:
    messages = [{"role": "user", "content": "a"}, {"odd": 1, "role": "user"}, {"odd": 2, "id": "x"}, "text"]
    assert unknown_keys(messages, CHAT_KEYS) == ("messages[1].odd", "messages[2].id")
