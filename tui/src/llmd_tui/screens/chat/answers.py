"""The answers that are being written, at most one in each chat."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Daemon
from llmd_tui.screens.chat.answer import Answer
from llmd_tui.screens.chat.open_chat import OpenChat
from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.words import progress_share, progress_words
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.bars import plain_bar

KEEP_S = 1.0
"""An unfinished answer is kept on disk this often, so that a crash loses little."""
BAR = 20
"""Cells of the bar."""


class Running:
    """An answer that is being written to a message of a chat.

    It can be stopped at any time, also before it has a message or a request.
    """

    def __init__(self, chat: OpenChat, answer: Answer, body: Mapping[str, Any], began: float) -> None:
        self.chat = chat
        self.message_id: int | None = None
        """The message, once it is in the chat."""
        self.answer = answer
        self.body = body
        self.began = began
        self.request_id = f"tui_{uuid.uuid4().hex}"
        self._request: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def receive(self, daemon: Daemon, clock: Callable[[], float]) -> None:
        """Receive the answer to its end; if it is stopped, the daemon's request ends too."""
        if self._is_stopped:
            self.answer.stop()
            return
        # Only the request is cancelled by `stop`: what shows the end of the answer still has to run.
        self._request = asyncio.create_task(self._stream(daemon, clock))  # noqa: TID251 - awaited next
        try:
            await self._request
        except asyncio.CancelledError:
            self.answer.stop()
        except LlmdError as error:
            self.answer.fail(error)
        else:
            self.answer.end()

    def stop(self) -> None:
        """End it now, or before it begins; what has arrived is kept."""
        self._is_stopped = True
        if self._request is not None:
            self._request.cancel()

    def words(self, state: DaemonState, now: float, *, ascii_only: bool = False) -> str:
        """Say how far it is."""
        if self.answer.has_begun:
            return "● writing – Esc stops it"
        model = str(self.body.get("model", ""))
        what = progress_words(state, self.request_id, model) or "waiting for the first token"
        done = progress_share(state, self.request_id, model)
        bar = "" if done is None else f"  {plain_bar(done, BAR, ascii_only=ascii_only)}"
        return f"◌ {what}{bar}  {now - self.began:.0f} s – Esc stops it"

    async def keep(self) -> None:
        """Keep what has arrived."""
        if self.message_id is not None and self.message_id in self.chat.tree:
            await self.chat.update(self.message_id, self.answer.content())

    async def _stream(self, daemon: Daemon, clock: Callable[[], float]) -> None:
        kept = clock()
        async with aclosing(daemon.stream(ROUTE, self.body, request_id=self.request_id)) as chunks:
            async for chunk in chunks:
                now = clock()
                self.answer.feed(chunk, now)
                if now - kept >= KEEP_S:
                    kept = now
                    await self.keep()
