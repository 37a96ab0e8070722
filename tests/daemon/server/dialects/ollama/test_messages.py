from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.messages import read_messages, refuse_images


def read(*messages: Any) -> list[dict[str, Any]]:
    return read_messages(RequestFields({"messages": list(messages)}))


def test_roles_are_lower_case_and_tools_are_named_as_templates_expect() -> None:
    assert read({"role": "User", "content": "a", "images": []}) == [{"role": "user", "content": "a"}]
    assert read({"role": "tool", "content": "1", "tool_name": "f"}) == [
        {"role": "tool", "content": "1", "name": "f"}
    ]
    assert read_messages(RequestFields({})) == []


@pytest.mark.parametrize(
    "message",
    [
        "text",
        {"content": "a"},
        {"role": "developer", "content": "a"},
        {"role": "user"},
        {"role": "user", "contnet": "a"},
    ],
)
def test_what_is_no_message_is_refused_by_its_place(message: Any) -> None:
    with pytest.raises(RequestError, match=r"messages\[1\]"):
        read({"role": "user", "content": "a"}, message)


def test_pictures_are_refused() -> None:
    with pytest.raises(BadRequestError, match="read only text") as caught:
        read({"role": "user", "content": "a", "images": ["aGVsbG8="]})
    assert caught.value.param == "messages[0].images"
    refuse_images({"images": []}, "images")
