"""Follows a daemon's events and connects again by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Literal

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Daemon, RefusedError
from llmd_tui.state.daemon_state import DaemonState

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
Status = Literal["connecting", "connected", "lost", "refused"]


class Follower:
    """Keeps ``state`` up to date. ``changed`` is set with every event and every change of the connection."""

    def __init__(self, daemon: Daemon, clock: Callable[[], float]) -> None:
        self._daemon = daemon
        self._clock = clock
        self.state = DaemonState()
        self.status: Status = "connecting"
        self.refusal: RefusedError | None = None
        """What the daemon said if it does not allow to follow its events; then ``status`` is ``refused``."""
        self.reason = ""
        """Why the connection was lost, in words; empty while there is one."""
        self.changed = asyncio.Event()

    async def follow(self) -> None:
        """Follow the events until cancelled, or until the daemon refuses: a key stays what it is."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with aclosing(self._daemon.events(self.state.last_number)) as events:
                    async for event in events:
                        wait_s = FIRST_WAIT_S
                        self._set("connected", "")
                        self.state.apply(event, self._clock())
                self._set("lost", "the daemon ended the stream of events")
            except RefusedError as error:
                self.refusal = error
                self._set("refused", str(error))
                return
            except LlmdError as error:
                self._set("lost", str(error))
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _set(self, status: Status, reason: str) -> None:
        if status == "lost" and self.status != "lost":
            # Another daemon may answer next: its numbers are its own.
            self.state.last_number = None
        self.status, self.reason = status, reason
        self.changed.set()
