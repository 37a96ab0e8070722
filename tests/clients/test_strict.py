from __future__ import annotations

import json

import pytest
from anthropic.types import Message
from pydantic import ValidationError

from tests.clients.strict import check

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def test_what_the_type_has_passes() -> None:
    message = check(Message, json.dumps(MESSAGE))
    assert isinstance(message, Message)


@pytest.mark.parametrize(
    "changed",
    [
        {"stop_reason": "bored"},
        {"usage": {"input_tokens": 1}},
        {"usage": {"input_tokens": "1", "output_tokens": 1}},
        {"content": [{"type": "text"}]},
    ],
)
def test_missing_fields_and_other_types_are_noticed(changed: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        check(Message, json.dumps(MESSAGE | changed))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"odd": 1}, "body.odd"),
        ({"usage": {"input_tokens": 1, "output_tokens": 1, "odd": 1}}, "body.usage.odd"),
        ({"content": [{"type": "text", "text": "Hi", "odd": 1}]}, r"body.content\[0\].odd"),
    ],
)
def test_unknown_fields_are_noticed(changed: dict[str, object], name: str) -> None:
    with pytest.raises(AssertionError, match=f"does not know {name}"):
        check(Message, json.dumps(MESSAGE | changed))
