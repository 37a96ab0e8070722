"""The log of the daemon and its engines, as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import ClassVar

import msgspec
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, RichLog

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError
from llmd_tui import actions
from llmd_tui.daemon.access import RefusedError
from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.logs.records import KEPT, Record, Records
from llmd_tui.state.follower import FIRST_WAIT_S, LONGEST_WAIT_S

OLDER = 500
"""Records from before the screen was opened."""
LOST = "lost"
"""The type of what the daemon sends in place of records that this screen was too slow to read."""


class LogsScreen(DaemonScreen):
    """Follows the log while it is shown."""

    CSS = """
    LogsScreen RichLog {
        height: 1fr;
        padding: 0 1;
        background: $background;
    }

    LogsScreen #find {
        height: 1;
        border: none;
    }
    """
    NAME = "logs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "change_level", "Level"),
        Binding("slash", "find", "Find"),
        Binding("end,G", "follow", "Follow"),
        Binding("y", "copy_shown", "Copy"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._records = Records()
        self._received = 0
        """What all connections have sent: the wait before the next one is short again after each piece."""
        self._width = 0
        self._says_why_empty = False

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder="Show only lines with this text; Esc shows all", id="find")
        yield RichLog(max_lines=KEPT, min_width=20, wrap=True, auto_scroll=True)

    def on_mount(self) -> None:
        self.query_one("#find").display = False

    def on_screen_resume(self) -> None:
        self.query_one(RichLog).focus()

    def on_screen_suspend(self) -> None:
        """End the stream: a screen that is not shown asks for nothing. Behind a dialog it is shown."""
        if self.tui.shown is not self:
            self.workers.cancel_group(self, "fetch")

    async def fetch(self) -> None:
        """Follow the log until cancelled; connect again when the connection is lost."""
        wait_s = FIRST_WAIT_S
        while True:
            before = self._received
            try:
                await self._follow()
            except RefusedError:
                raise  # trying again with the same key does not help
            except LlmdError as error:
                self.tui.show_failure(error)
            if self._received != before:
                wait_s = FIRST_WAIT_S
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def _follow(self) -> None:
        """Show the records of one connection, until it ends."""
        stream = self.daemon.stream("/llmd/logs", lines=str(OLDER), level="debug", follow="1")
        is_first = True
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if is_first:
                    is_first = False
                    self.tui.forget_failure()
                self._received += 1
                if piece.get("type") != LOST:  # then the number of the next record shows the gap
                    self._show_new(self._records.received(msgspec.convert(piece, prepared(Record))))

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines again where the width has changed: the log keeps them as they were written."""
        if event.size.width != self._width:
            self._width = event.size.width
            self.call_after_refresh(self._write_all)

    def action_change_level(self) -> None:
        """Show less important records too, down to all of them; then errors alone."""
        self.notify(f"Showing {self._records.lower()} and above.", timeout=2)
        self._write_all()

    def action_find(self) -> None:
        field = self.query_one("#find", Input)
        field.display = True
        field.focus()

    def action_follow(self) -> None:
        """Go to the end and stay there."""
        log = self.query_one(RichLog)
        log.auto_scroll = True
        log.scroll_end(animate=False)

    def action_copy_shown(self) -> None:
        """Copy the lines that are shown."""
        text = "\n".join(record.text for record in self._records.shown)
        self.post_message(actions.CopyText(text, "the lines"))

    @on(Input.Changed, "#find")
    def find(self, event: Input.Changed) -> None:
        self._records.wanted = event.value
        self._write_all()

    @on(Input.Submitted, "#find")
    def leave_find(self) -> None:
        self.query_one(RichLog).focus()

    def key_escape(self) -> None:
        """Show all lines again."""
        field = self.query_one("#find", Input)
        field.value = ""
        field.display = False
        self.query_one(RichLog).focus()

    def _show_new(self, new: Sequence[Record]) -> None:
        if new and self._says_why_empty:
            self._write_all()
        else:
            self._write(new)

    def _write(self, records: Sequence[Record]) -> None:
        log = self.query_one(RichLog)
        follows = log.is_vertical_scroll_end
        for record in records:
            log.write(record.line, scroll_end=follows)

    def _write_all(self) -> None:
        self.query_one(RichLog).clear()
        shown = self._records.shown
        self._write(shown)
        self._says_why_empty = not shown
        if not shown:
            text = f" contains {self._records.wanted!r}" if self._records.wanted else ""
            words = f"No line of level {self._records.level} and above{text}; l shows other levels."
            self.query_one(RichLog).write(Text(words, "dim"))
