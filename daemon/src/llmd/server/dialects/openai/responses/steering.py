"""Refuses ``response.steer``, which adds input to an answer that is running, as OpenAI's clients expect.

Source: the types ``ResponseSteerEvent`` and ``ResponseSteerFailedEvent`` of OpenAI's Python library.
"""

from __future__ import annotations

from typing import Any

from aiohttp import WSMessage, WSMsgType

from llmd.requests.fields import BadRequestError
from llmd.server.http.bodies import decode_object
from llmd.server.http.problems import INVALID_REQUEST

STEER = "response.steer"
MESSAGE = "a running answer takes no more input: send it with response.create when the answer has ended"


def refused_steering(message: WSMessage) -> dict[str, Any] | None:
    """Return the event that refuses a message ``response.steer`` and returns its input; None for others."""
    if message.type is not WSMsgType.TEXT or STEER not in message.data:
        return None
    try:
        steer = decode_object(message.data)
    except BadRequestError:
        return None
    if steer.get("type") != STEER:
        return None
    return {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": {"type": INVALID_REQUEST, "code": "steering_not_supported", "message": MESSAGE},
        "steer": {name: steer.get(name, "") for name in ("previous_response_id", "input")},
    }
