"""Pings the service manager's watchdog while the event loop runs and every engine gives signs of life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from llmd.server.systemd.notifier import Notifier

logger = logging.getLogger(__name__)


async def ping_watchdog(notifier: Notifier, limit_s: float, silence_s: Callable[[], float]) -> None:
    """Ping at half of the watchdog's limit, until cancelled.

    ``silence_s`` returns for how long an engine has hung. The supervisor restarts such an engine; if it has
    not done so by half of the limit, pings stop, and the service manager restarts the daemon.
    """
    interval_s = limit_s / 2
    while True:
        if (silent_s := silence_s()) < interval_s:
            notifier.ping()
        else:
            logger.error("watchdog_not_pinged", extra={"engine_silent_s": round(silent_s, 1)})
        await asyncio.sleep(interval_s)
