"""Holds every reply of `/v1/responses` that a daemon of this process sends against its shape,
whichever client asked.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from aiohttp import web

from llmd.server.app import RequestHandler
from llmd.server.http.json_line import encode_json
from llmd.server.http.streamed_reply import StreamedReply
from llmd.server.request_record import current_record
from tests.serving.open_responses.shapes import events, responses

CREATE = "/v1/responses"
SHOW = "/v1/responses/{id}"

_mistakes: list[str] = []


@cache
def check_replies() -> None:
    """From now on, read what passes the two places where replies leave:
    whole at the door, value by value in a stream.
    """
    answer, send = RequestHandler.__call__, StreamedReply.send

    async def checked_answer(self: RequestHandler, request: web.Request) -> web.StreamResponse:
        response = await answer(self, request)
        created_or_shown = (request.method, current_record().route) in {("POST", CREATE), ("GET", SHOW)}
        if created_or_shown and response.status == 200 and isinstance(response, web.Response):
            assert isinstance(response.body, bytes)
            _hold_against(responses, response.body)
        return response

    async def checked_send(self: StreamedReply, value: Any) -> None:
        if current_record().route == CREATE:
            _hold_against(events, encode_json(value))
        await send(self, value)

    RequestHandler.__call__ = checked_answer  # type: ignore[method-assign]
    StreamedReply.send = checked_send  # type: ignore[method-assign]


def take_mistakes() -> list[str]:
    """The mistakes since this was last called."""
    taken = _mistakes[:]
    _mistakes.clear()
    return taken


def _hold_against(shape: msgspec.json.Decoder[Any], sent: bytes) -> None:
    try:
        shape.decode(sent)
    except msgspec.ValidationError as error:
        _mistakes.append(f"{error}: {sent.decode()}")
