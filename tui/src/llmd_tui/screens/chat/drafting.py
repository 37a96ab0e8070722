"""What is shown and kept while a message is written: the draft, its tokens, and how far an answer is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat import counting
from llmd_tui.screens.chat.generation_settings import listed
from llmd_tui.screens.chat.tools import unanswered, waiting_words

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen

COUNT_AFTER_S = 0.4
"""Tokens are counted this long after the last change of the draft."""
KEEP_AFTER_S = 0.3
"""The draft is kept on disk this long after its last change."""


class Drafting:
    """The draft of the shown chat."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._text = ""
        self._kept = ""
        """What is on disk."""
        self._keeping = asyncio.Lock()
        self._model = ""
        """Of which the gauge shows the context."""

    def begin(self, text: str) -> None:
        """Take in the draft of a chat that is opened."""
        self._text = self._kept = text

    # Workers get functions: a coroutine that is cancelled before it begins would never be awaited.
    def changed(self) -> None:
        """Keep the draft and count its tokens, both soon."""
        self._take()
        self._run(self._keep_soon, "draft")
        self.count()

    def count(self) -> None:
        """Show soon how full the context is."""
        self._run(self._count_soon, "count")

    async def keep(self) -> None:
        """Keep the draft as it was last seen: at the end, the prompt is gone before the screen."""
        async with self._keeping:
            text = self._text
            if text != self._kept:
                await self._screen.chat.change(draft=text)
                self._kept = text

    def describe(self) -> None:
        """Show model and settings."""
        settings, gauge = self._screen.chat.settings, self._screen.composer.gauge
        if settings.model != self._model:
            self._model = settings.model
            gauge.show(None)  # the context of another model says nothing about this one's
        parts = [settings.model or "no model", "system prompt" if settings.system else "", listed(settings)]
        gauge.describe(" · ".join(part for part in parts if part))

    def show_progress(self) -> None:
        """Show how far the answer is."""
        screen = self._screen
        running = screen.sending.running(screen.chat)
        ascii_only = "-ascii" in screen.app.classes
        words = running.words(screen.tui.state, screen.tui.clock(), ascii_only=ascii_only) if running else ""
        screen.composer.progress(words)
        if screen.edited is None:
            screen.composer.note("" if running else waiting_words(unanswered(screen.chat.path)))

    def _run(
        self, step: Callable[[], Coroutine[Any, Any, None]], group: str, *, exclusive: bool = True
    ) -> None:
        """Run a step in the background; if ``exclusive``, in place of the one before it."""
        self._screen.run_worker(step, group=group, exclusive=exclusive)  # type: ignore[arg-type] # mypy infers Never

    def _take(self) -> None:
        """Look at the prompt. The text of an edited message is no draft."""
        screen = self._screen
        self._text = "" if screen.edited else screen.prompt.text

    async def _keep_soon(self) -> None:
        await asyncio.sleep(KEEP_AFTER_S)
        self._run(self._keep_now, "keep", exclusive=False)  # the next change must not cut a writing short

    async def _keep_now(self) -> None:
        await self._screen.told(self.keep())

    async def _count_soon(self) -> None:
        await asyncio.sleep(COUNT_AFTER_S)
        screen = self._screen
        try:
            room = await counting.room(screen.daemon, screen.chat, screen.draft(), screen.window)
        except LlmdError:
            screen.composer.gauge.show(None)  # unknown while the daemon cannot say
        else:
            screen.composer.gauge.show(room)
