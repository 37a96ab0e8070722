from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.server.generation.chat_messages import check_message

ROLES = ("system", "user", "assistant")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Hi", "must be an object"),
        ({"content": "a"}, "role must be one of system, user, assistant, not None"),
        ({"role": "tool", "content": "a"}, "not 'tool'"),
        ({"rol": "user", "content": "a"}, "its key 'rol' is unknown; did you mean 'role'?"),
        ({"role": "user"}, "has no content"),
        ({"role": "user", "message": "a"}, "its key 'message' is unknown"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place_and_a_hint(message: Any, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_message(message, "messages[1]", ROLES)
    assert str(caught.value).startswith("messages[1]")
    assert reason in str(caught.value)


def test_unknown_keys_next_to_content_pass() -> None:
    check_message({"role": "user", "content": "a", "odd": 1}, "messages[0]", ROLES)
