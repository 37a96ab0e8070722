"""Keeps the service manager informed: one line of status, and more time while the daemon needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from llmd.server.systemd.notifier import Notifier

EVERY_S = 2.0
MORE_S = 30.0
"""Must be much longer than `EVERY_S`: a busy event loop may be late."""


class Progress(Struct, frozen=True):
    """What the daemon does at the moment."""

    status: str
    needs_time: bool = False
    """Whether it is starting or stopping, and the time limit of that must be extended."""


async def report_progress(notifier: Notifier, look: Callable[[], Progress], every_s: float = EVERY_S) -> None:
    """Report the daemon's state until cancelled."""
    while True:
        seen = look()
        notifier.status(seen.status)
        if seen.needs_time:
            notifier.need_time(MORE_S)
        await asyncio.sleep(every_s)
