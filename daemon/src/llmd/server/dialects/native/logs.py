"""``GET /llmd/logs``: the latest log records, and those to come."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aiohttp import web

from llmd.requests.fields import BadRequestError
from llmd.server.dialects.native.events import LAST_EVENT, NumberedEvents, last_seen
from llmd.server.http.event_stream import HEADERS, PING
from llmd.server.service import Service
from llmd.server.telemetry.feed import Event
from llmd.server.telemetry.log_buffer import KEPT

LINES = 200
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


async def logs(request: web.Request, service: Service) -> web.StreamResponse:
    """Return the last ``lines`` records from ``level`` on, one JSON object per line.

    With ``follow=1``, they and all later records are server-sent events, until the client disconnects.

    Raises:
        BadRequestError: a parameter has no such value.
        BusyError: too many clients follow.
    """
    lines, level = _lines(request.query.get("lines", "")), _level(request.query.get("level", "info"))
    if request.query.get("follow", "0") not in {"", "0", "false"}:
        return await _followed(request, service, lines, level)
    latest = _latest(service.logs.kept, lines, level)
    body = b"".join(event.data + b"\n" for event in latest)
    return web.Response(body=body, headers={"Content-Type": "application/x-ndjson"})


async def _followed(request: web.Request, service: Service, lines: int, level: int) -> web.StreamResponse:
    feed, after = service.logs, last_seen(request.headers.get(LAST_EVENT, ""))
    with feed.watch(after) as watcher:
        async with NumberedEvents(request, HEADERS, service.config.limits.ping_s, PING) as stream:
            if after is None:
                await stream.send(_latest(feed.kept, lines, level))
            while True:
                happened = await watcher.next()
                if happened is None:
                    happened = [Event.of(feed.last, "lost", {}, logging.CRITICAL)]
                if wanted := [event for event in happened if event.level >= level]:
                    await stream.send(wanted)
        return stream.response


def _latest(kept: Sequence[Event], lines: int, level: int) -> list[Event]:
    found = [event for event in kept if event.level >= level]
    return found[-lines:] if lines else []


def _lines(text: str) -> int:
    if not text:
        return LINES
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(KEPT)) and int(text) <= KEPT):
        raise BadRequestError(
            f"lines must be between 0 and {KEPT}, not {text[:40]!r}", code="invalid_value", param="lines"
        )
    return int(text)


def _level(text: str) -> int:
    if text not in LEVELS:
        raise BadRequestError(
            f"level must be one of {', '.join(LEVELS)}, not {text[:40]!r}",
            code="invalid_value",
            param="level",
        )
    return LEVELS[text]
