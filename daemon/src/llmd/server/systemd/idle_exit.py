"""Decides when a daemon that its sockets can start again has been idle for long enough to end."""

from __future__ import annotations

from llmd.server.service import Service


async def idle_for(service: Service, seconds: float) -> None:
    """Wait until the daemon has done nothing for ``seconds``.

    Loaded models, pulls and clients that watch events are something. Reading its state is nothing.
    """
    while True:
        await service.activity.quiet(seconds)
        if not (service.models.served or service.pulls.running or service.metrics.feed.watchers):
            return
