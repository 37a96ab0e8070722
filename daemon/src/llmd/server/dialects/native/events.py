"""``GET /llmd/events``: a live stream of the daemon's events (docs/operations.md lists their fields)."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from llmd.server.http.event_stream import HEADERS, PING
from llmd.server.http.streamed_reply import StreamedReply
from llmd.server.service import Service
from llmd.server.telemetry.feed import Event

LAST_EVENT = "Last-Event-ID"


class NumberedEvents(StreamedReply):
    """Server-sent events with numbers, so that a client can resume after a disconnect.

    A value is a sequence of events: those of one moment are one write.
    """

    def _framed(self, value: Sequence[Event]) -> bytes:
        return b"".join(
            b"id: %d\nevent: %b\ndata: %b\n\n" % (event.number, event.type.encode(), event.data)
            for event in value
        )


async def events(request: web.Request, service: Service) -> web.StreamResponse:
    """Stream a snapshot, then every event, until the client disconnects.

    A watcher that falls too far behind gets a ``lost`` event and a new snapshot.
    """
    feed = service.metrics.feed
    after = last_seen(request.headers.get(LAST_EVENT, ""))
    async with (
        service.snapshots.watch(after) as watcher,
        NumberedEvents(request, HEADERS, service.config.limits.ping_s, PING) as stream,
    ):
        if after is None:
            await stream.send([Event.of(feed.last, "snapshot", await service.snapshots.snapshot())])
        while True:
            happened = await watcher.next()
            if happened is None:
                await stream.send([Event.of(feed.last, "lost", {})])
                happened = [Event.of(feed.last, "snapshot", await service.snapshots.snapshot())]
            await stream.send(happened)
    return stream.response


def last_seen(text: str) -> int | None:
    """Return the number of the last event that a client has received; None if it starts without one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


async def metrics(_request: web.Request, service: Service) -> web.Response:
    """Return the metrics for Prometheus."""
    body = await service.snapshots.metrics()
    return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
