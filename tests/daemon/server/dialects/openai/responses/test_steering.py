from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import WSMessage, WSMsgType
from openai.types.responses import ResponseSteerFailedEvent

from llmd.server.dialects.openai.responses.steering import refused_steering
from tests.clients.strict import check


def text(data: str) -> WSMessage:
    return WSMessage(WSMsgType.TEXT, data, None)


@pytest.mark.parametrize("content", ["Stop", [{"type": "message", "role": "user", "content": "Stop"}]])
def test_the_refusal_returns_the_input(content: Any) -> None:
    steer = {"previous_response_id": "resp_1", "input": content}
    refused = refused_steering(text(json.dumps({"type": "response.steer", **steer})))
    assert refused is not None
    assert refused["steer"] == steer
    assert "response.create" in refused["error"]["message"]
    check(ResponseSteerFailedEvent, json.dumps(refused))


def test_an_incomplete_message_is_refused_too() -> None:
    refused = refused_steering(text('{"type": "response.steer"}'))
    assert refused is not None
    check(ResponseSteerFailedEvent, json.dumps(refused))


@pytest.mark.parametrize(
    "data",
    ['{"type": "response.create", "input": "response.steer"}', '["response.steer"]', "{response.steer"],
)
def test_other_messages_are_not_refused(data: str) -> None:
    assert refused_steering(text(data)) is None


def test_bytes_are_no_message() -> None:
    message = WSMessage(WSMsgType.BINARY, b'{"type": "response.steer"}', None)
    assert refused_steering(message) is None
