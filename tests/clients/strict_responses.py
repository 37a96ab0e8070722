"""Responses and their events, held against the types of OpenAI's client
and against the shapes of Open Responses.
"""

from __future__ import annotations

from typing import Any

from openai.types.responses import Response, ResponseStreamEvent

from tests.clients.strict import check
from tests.serving.open_responses.shapes import events, responses

# Open Responses requires them, and OpenAI's types lack them; its client keeps fields that it does not know.
BEYOND_OPENAI = frozenset({"presence_penalty", "frequency_penalty", "store", "bytes", "error"})


def check_response(raw: bytes | str) -> Any:
    """A response in the client's type; raises where it is another than either has it."""
    responses.decode(raw)
    return check(Response, raw, beyond=BEYOND_OPENAI)


def check_event(raw: bytes | str) -> Any:
    """An event of a stream in the client's type; raises as `check_response` does."""
    events.decode(raw)
    return check(ResponseStreamEvent, raw, beyond=BEYOND_OPENAI)
